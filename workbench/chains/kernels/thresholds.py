"""The best dispatch by value iteration: when should the head of the line start, and on which chain?"""

import numpy as np

from workbench.jit import inner_kernel, kernel


@kernel
def best_starts(arrival_rate_per_s, rates_per_s, slots, longest, tolerance, most_sweeps, value, start):
    """Relative value iteration for the least mean number inside.

    Parameters:
        arrival_rate_per_s: λ.
        rates_per_s, slots: float64[K] and int64[K], exponential services.
        longest: jobs in the line at most; one more is turned away, so it must hardly ever be that long.
        tolerance: the mean is known to within this when sweeps stop.
        most_sweeps: sweeps at most.
        value: float64[Z, longest + 1] to fill: relative cost of having z busy slots and a line, no job about to start.
        start: int64[Z, longest + 1] to fill: the chain on which the head of the line starts, -1 to wait. Z is the
            product of slots + 1, the first chain counting slowest.

    Returns:
        Mean number inside, and whether the tolerance was met.
    """
    chains, states = slots.size, value.shape[0]
    stride = np.ones(chains, np.int64)
    for k in range(chains - 2, -1, -1):
        stride[k] = stride[k + 1] * (slots[k + 1] + 1)
    step_per_s = arrival_rate_per_s
    for k in range(chains):
        step_per_s += slots[k] * rates_per_s[k]
    settled = np.empty_like(value)  # cost once all that should start has started
    new = np.empty_like(value)
    value[:] = 0.0
    mean = 0.0
    for _ in range(most_sweeps):
        _settle(value, settled, start, slots, stride)
        low, high = np.inf, -np.inf
        for z in range(states):
            inside = 0
            for k in range(chains):
                inside += (z // stride[k]) % (slots[k] + 1)
            for q in range(longest + 1):
                rest = step_per_s - arrival_rate_per_s
                total = inside + q + arrival_rate_per_s * settled[z, min(q + 1, longest)]
                for k in range(chains):
                    busy = (z // stride[k]) % (slots[k] + 1)
                    total += busy * rates_per_s[k] * settled[z - stride[k], q] if busy > 0 else 0.0
                    rest -= busy * rates_per_s[k]
                total += rest * value[z, q]
                change = total - step_per_s * value[z, q]
                low = min(low, change)
                if start[z, q] < 0:  # where the head starts, waiting on is not followed: its cost settles but slowly
                    high = max(high, change)
                new[z, q] = total / step_per_s
        value[:] = new - new[0, 0]
        mean = (low + high) / 2.0
        if high - low <= tolerance:
            _settle(value, settled, start, slots, stride)
            return mean, True
    return mean, False


@inner_kernel
def _settle(value, settled, start, slots, stride):
    """Let heads of the line start while that costs less than waiting; of equally good chains take the fastest."""
    for q in range(value.shape[1]):
        for z in range(value.shape[0]):
            settled[z, q] = value[z, q]
            start[z, q] = -1
            if q == 0:
                continue
            for k in range(slots.size):
                if (z // stride[k]) % (slots[k] + 1) < slots[k]:
                    after = settled[z + stride[k], q - 1]
                    if after < settled[z, q]:
                        settled[z, q], start[z, q] = after, k
