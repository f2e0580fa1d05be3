"""Times of tokens and gaps between them, expanded from the log of steps and the segments of requests."""

import numpy as np

from workbench.jit import lean_kernel


@lean_kernel
def fill_token_times(segments, iteration_end_s, iteration_at, begin, tokens_s):
    """Lay the times of all tokens out request after request.

    Parameters:
        segments: int64[k, 5] of `Outcome`, all of them or those of some requests.
        iteration_end_s, iteration_at: of `Outcome`.
        begin: int64[k], where the tokens of each segment's request begin in `tokens_s`.
        tokens_s: float64, to be filled.
    """
    for row in range(segments.shape[0]):
        at = begin[row] + segments[row, 1]
        step = iteration_at[segments[row, 3]] + segments[row, 4]
        for i in range(segments[row, 2]):
            tokens_s[at + i] = iteration_end_s[step + i]


@lean_kernel
def fill_gaps(segments, iteration_end_s, iteration_at, shares, gaps_s, mean_s, largest_s, quantiles_s):
    """Mean, largest and quantiles of the gaps between the tokens of each request that has two tokens or more.

    Parameters:
        segments, iteration_end_s, iteration_at: of `Outcome`.
        shares: float64[q] from 0 to 1.
        gaps_s: float64 scratch, as long as the most tokens of one request.
        mean_s, largest_s: float64[n], NaN where there is no gap.
        quantiles_s: float64[n, q], interpolated between the two nearest gaps.
    """
    row = 0
    while row < segments.shape[0]:
        request, count, before_s, largest = segments[row, 0], 0, np.nan, -np.inf
        first_s = iteration_end_s[iteration_at[segments[row, 3]] + segments[row, 4]]
        while row < segments.shape[0] and segments[row, 0] == request:
            step = iteration_at[segments[row, 3]] + segments[row, 4]
            for i in range(segments[row, 2]):
                now_s = iteration_end_s[step + i]
                if count > 0:
                    gap = now_s - before_s
                    gaps_s[count - 1] = gap
                    largest = max(largest, gap)
                before_s = now_s
                count += 1
            row += 1
        if count < 2:
            continue
        mean_s[request] = (before_s - first_s) / (count - 1)
        largest_s[request] = largest
        for q in range(shares.size):
            quantiles_s[request, q] = quantile(gaps_s, count - 1, shares[q])


@lean_kernel
def quantile(values, count, share):
    """The quantile of the first `count` values, interpolated linearly; their order changes."""
    place = share * (count - 1)
    k = int(place)
    low = kth_smallest(values, count, k)
    if k + 1 >= count or place == k:
        return low
    high = values[k + 1]  # all behind k are as large as it or larger
    for i in range(k + 2, count):
        high = min(high, values[i])
    return low + (place - k) * (high - low)


@lean_kernel
def kth_smallest(values, count, k):
    """The value at place `k` of the first `count` in order; smaller ones come to lie before it, larger ones behind.

    Hoare's selection: many equal values cost no more than different ones, because both scans stop at them.
    """
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]
