"""Tokens over time while a cluster scales out: lanes that serve at a rate from one instant to another."""

import numpy as np

from workbench.jit import kernel


@kernel
def rate_over_time(time_s, begin_s, end_s, rate_per_s, out_per_s):
    """Fill the rate at which all lanes together make tokens at each time.

    Parameters:
        time_s: float64[t]; at an instant at which a lane begins it counts, at one at which it ends it does not.
        begin_s, end_s, rate_per_s: float64[n] of each lane; infinity where it never begins or never ends.
        out_per_s: float64[t].
    """
    for k in range(time_s.size):
        total = 0.0
        for lane in range(begin_s.size):
            if begin_s[lane] <= time_s[k] < end_s[lane]:
                total += rate_per_s[lane]
        out_per_s[k] = total


@kernel
def made_over_time(time_s, begin_s, end_s, rate_per_s, out):
    """Fill how many tokens all lanes together have made up to each time; parameters as of `rate_over_time`."""
    for k in range(time_s.size):
        total = 0.0
        for lane in range(begin_s.size):
            until_s = min(time_s[k], end_s[lane])
            if until_s > begin_s[lane]:
                total += rate_per_s[lane] * (until_s - begin_s[lane])
        out[k] = total


def rate_over_time_slow(time_s, begin_s, end_s, rate_per_s):
    """Twin of `rate_over_time`: the lanes that are on at each time, all at once."""
    on = (begin_s <= time_s[:, None]) & (time_s[:, None] < end_s)
    return on @ rate_per_s


def made_over_time_slow(time_s, begin_s, end_s, rate_per_s):
    """Twin of `made_over_time`: the part of each lane's life that is over, all at once."""
    ever = np.isfinite(begin_s)
    begin_s, end_s = begin_s[ever], np.maximum(begin_s, end_s)[ever]
    return (np.clip(time_s[:, None], begin_s, end_s) - begin_s) @ rate_per_s[ever]
