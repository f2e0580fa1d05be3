"""PETALS: how many blocks a server takes, where it puts them as it joins, and what a client thinks a server costs."""

import numpy as np

from workbench.jit import kernel

SORTED, SUMMED = 0, 1
"""Which window is the weakest: of sorted throughputs the first in lexicographic order (PETALS), or of the smallest sum
(as the simulator of arXiv 2604.14993 has it)."""


@kernel
def petals_blocks(memory_bytes, layers, kept_bytes, block_bytes, pool_bytes, most, blocks):
    """Fill int64[J] with the blocks each server takes: its memory less what is kept free, over block and cache pool.

    Parameters:
        kept_bytes: memory that is never given to blocks.
        pool_bytes: cache of one block, for however many sessions.
        most: int64[J], most blocks that each server may take.
    """
    for server in range(memory_bytes.size):
        fitting = max(0, memory_bytes[server] - kept_bytes) // (block_bytes + pool_bytes)
        blocks[server] = min(fitting, layers, most[server])


@kernel
def petals_join(order, blocks, throughput_per_s, layers, rule, first):
    """Fill int64[J] with the first block (from 0) of each server, as servers join one by one where blocks are weakest.

    Parameters:
        order: int64[J], servers as they join.
        throughput_per_s: float64[J], what a server adds to each of its blocks.
        rule: SORTED or SUMMED; of equally weak windows the first.
    """
    served = np.zeros(layers)
    first[:] = -1
    for server in order:
        width = blocks[server]
        if width == 0:
            continue
        best = 0
        for begin in range(1, layers - width + 1):
            if _weaker(served[begin : begin + width], served[best : best + width], rule):
                best = begin
        first[server] = best
        served[best : best + width] += throughput_per_s[server]


@kernel
def _weaker(one, other, rule):
    if rule == SUMMED:
        return one.sum() < other.sum()
    a, b = np.sort(one), np.sort(other)
    for place in range(a.size):
        if a[place] != b[place]:
            return a[place] < b[place]
    return False
