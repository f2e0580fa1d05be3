"""The requests of a blended order dealt to ranks, so that each computes and reads its share."""

import numpy as np

from workbench.jit import kernel


@kernel
def cut(compute, heavy, wanted, rank):
    """Cut the light requests, in their order, where each rank has what it wants to compute.

    Parameters:
        compute: float64[n], by place. heavy: bool[n], places to leave out. wanted: float64[k], by rank.
        rank: int64[n], filled for the light places.
    """
    ranks = wanted.size
    ends = np.cumsum(wanted)
    scale = 0.0
    for place in range(compute.size):
        if not heavy[place]:
            scale += compute[place]
    scale /= ends[ranks - 1]
    done, current = 0.0, 0
    for place in range(compute.size):
        if heavy[place]:
            continue
        middle = done + 0.5 * compute[place]
        while current < ranks - 1 and middle > ends[current] * scale:
            current += 1
        rank[place] = current
        done += compute[place]


@kernel
def fill(read, heavy, wanted, rank):
    """Deal the heavy requests from the right end: a rank takes the next ones that fit into what it wants to read.

    One that does not fit waits for the next rank; what fits nowhere goes to the rank that lacks most.

    Parameters:
        read: float64[n], by place. heavy: bool[n], places to deal. wanted: float64[k], by rank.
        rank: int64[n], filled for the heavy places.
    """
    left = wanted.copy()
    taken = ~heavy
    for current in range(wanted.size):
        for place in range(read.size - 1, -1, -1):
            if not taken[place] and read[place] <= left[current]:
                rank[place] = current
                taken[place] = True
                left[current] -= read[place]
    for place in range(read.size - 1, -1, -1):
        if not taken[place]:
            current = np.argmax(left)
            rank[place] = current
            left[current] -= read[place]
