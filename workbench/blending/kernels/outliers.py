"""Which leaves break a falling order of densities: all but those of a longest part that falls."""

import numpy as np

from workbench.jit import inner_kernel, kernel


@inner_kernel
def _best_up_to(weight, ending, rank):
    """The heaviest part among the ranks up to one, and the place where it ends (a Fenwick tree of maxima)."""
    most, last = 0, -1
    while rank > 0:
        if weight[rank] > most:
            most, last = weight[rank], ending[rank]
        rank -= rank & -rank
    return most, last


@kernel
def outliers(density, free, out):
    """Mark the leaves outside a longest part of the order in which densities fall, where they may move.

    Parameters:
        density: float64[n], of the leaves in their order.
        free: bool[n], leaves that may move.
        out: bool[n], filled: free leaves outside a longest non-increasing subsequence; among equally long ones, that
            which keeps the most leaves that may not move.
    """
    size = density.size
    order = np.argsort(-density, kind="mergesort")
    rank = np.empty(size, np.int64)  # 1 for the highest density; equal densities have one rank
    current = 0
    for place in range(size):
        if place == 0 or density[order[place]] != density[order[place - 1]]:
            current = place + 1
        rank[order[place]] = current
    weight, ending = np.zeros(size + 1, np.int64), np.full(size + 1, -1, np.int64)
    before = np.empty(size, np.int64)
    heaviest, last = 0, -1
    for place in range(size):
        most, before[place] = _best_up_to(weight, ending, rank[place])
        most += size + 1 if free[place] else size + 2
        if most > heaviest:
            heaviest, last = most, place
        at = rank[place]
        while at <= size:
            if most > weight[at]:
                weight[at], ending[at] = most, place
            at += at & -at
    out[:] = free
    while last >= 0:
        out[last] = False
        last = before[last]
