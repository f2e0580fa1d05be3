"""Which leaves break a falling order of densities: all but those of a longest part that falls."""

import numpy as np

from workbench.jit import kernel


@kernel
def outliers(density, out):
    """Mark the places outside a longest non-increasing subsequence: the fewest leaves that must go elsewhere.

    Parameters:
        density: float64[n], of the leaves in their order.
        out: bool[n], filled.

    Patience sorting: the best subsequence of every length ends as high as it can, found by bisection.
    """
    size = density.size
    ends = np.empty(size, np.int64)  # of each length the place at which the best one ends
    before = np.empty(size, np.int64)
    longest = 0
    for place in range(size):
        low, high = 0, longest  # ends have falling densities: append behind the last one that is not lower
        while low < high:
            middle = (low + high) // 2
            if density[ends[middle]] >= density[place]:
                low = middle + 1
            else:
                high = middle
        before[place] = ends[low - 1] if low else -1
        ends[low] = place
        longest = max(longest, low + 1)
    out[:] = True
    place = ends[longest - 1] if longest else -1
    while place >= 0:
        out[place] = False
        place = before[place]
