"""Every way to cut a set of servers into groups, over bit masks."""

import numpy as np

from workbench.jit import kernel


@kernel
def with_one_more(best, rate, found):
    """Fill float64[2^J] with the best rate of every set of servers cut into one group and those that `best` is about.

    Parameters:
        best, rate: float64[2^J], of every set (bit j: server j) cut into some groups, and taken as one group; minus
            infinity where that hosts no model.
    """
    for whole_set in range(best.size):
        most = -np.inf
        part = (whole_set - 1) & whole_set
        while part > 0:
            most = max(most, rate[part] + best[whole_set ^ part])
            part = (part - 1) & whole_set
        found[whole_set] = most
