"""How well promises were kept, counted in tokens and in time (notes on Aegaeon, §2.2)."""

from workbench.jit import lean_kernel


@lean_kernel
def fill_in_time(tokens_s, at, arrival_s, ttft_s, tbt_s, in_time):
    """Count the tokens of each request that come by their deadlines: arrival + TTFT + i x TBT for token i from 0.

    Parameters:
        tokens_s, at: float64, times of all tokens request after request; int64[n + 1], where each begins.
        arrival_s: float64[n].
        ttft_s, tbt_s: the promise.
        in_time: int64[n], to be filled.
    """
    for r in range(arrival_s.size):
        count = 0
        for k in range(at[r], at[r + 1]):
            if tokens_s[k] <= arrival_s[r] + ttft_s + (k - at[r]) * tbt_s:
                count += 1
        in_time[r] = count


@lean_kernel
def fill_time_kept(tokens_s, at, arrival_s, ttft_s, tbt_s, reset, kept):
    """The share of its time during which each request was served as promised, as Aegaeon's plots compute it.

    A target runs from the start of a stretch: TTFT at first, and a TBT more for each token that meets it. A miss ends
    the stretch; what was met counts, and the next stretch starts with the late token. Its target is the old one and a
    TBT (the published scripts) or, with `reset`, one TBT.

    Parameters:
        tokens_s, at, arrival_s, ttft_s, tbt_s: as for `fill_in_time`.
        reset: 1 or 0.
        kept: float64[n], to be filled for requests that have tokens.
    """
    for r in range(arrival_s.size):
        if at[r + 1] == at[r]:
            continue
        start, met, total, target = 0.0, 0.0, 0.0, ttft_s
        good = 0.0
        for k in range(at[r], at[r + 1]):
            total = tokens_s[k] - arrival_s[r]
            if total - start <= target:
                met = target
                target += tbt_s
            else:
                good += met
                start, met = total, 0.0
                target = tbt_s if reset == 1 else target + tbt_s
        kept[r] = (good + min(target, total - start)) / total
