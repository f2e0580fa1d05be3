"""Times that lie on a coarse grid, spread evenly at random inside their cells.

A whole second, or Mooncake's three, says only that a request came within it: left alone, such stamps are simultaneous
arrivals and every queue they meet is wrong.
"""

import numpy as np

TIED_SHARE = 0.5
"""From this share of rows sharing their stamp with an earlier one, stamps count as a grid."""


def found_cell_s(times_s: np.ndarray) -> float | None:
    """The width of the grid that sorted times lie on, or None where most stamps are their own."""
    stamps = np.unique(times_s)
    if stamps.size < 2 or 1.0 - stamps.size / times_s.size < TIED_SHARE:
        return None
    return float(np.median(np.diff(stamps)))


def spread_in_cells(times_s: np.ndarray, cell_s: float, seed: int) -> np.ndarray:
    """Move each of the sorted times forward by less than a cell, keeping their order.

    A cell ends at the next stamp where that comes earlier. The moves are uniform and independent; within a cell they
    are given out in ascending order, so that rows keep the order of the file.
    """
    stamps, place = np.unique(times_s, return_inverse=True)
    width = np.append(np.minimum(np.diff(stamps), cell_s), cell_s)
    share = np.random.default_rng(np.random.SeedSequence(seed)).random(times_s.size)
    share = share[np.lexsort((share, place))]
    return np.minimum(stamps[place] + share * width[place], np.nextafter((stamps + width)[place], 0.0))
