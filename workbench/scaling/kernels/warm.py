"""Several nodes that load the same blocks from their own memories, each in its own order."""

import numpy as np

from workbench.jit import kernel


@kernel
def warm_arrivals(order, block_s, arrival_s):
    """Fill when each node holds each block.

    Parameters:
        order: int64[nodes, blocks], the blocks in the order in which each node loads them.
        block_s: float64[blocks], seconds that a block takes.
        arrival_s: float64[nodes, blocks].
    """
    for node in range(order.shape[0]):
        now = 0.0
        for place in range(order.shape[1]):
            now += block_s[order[node, place]]
            arrival_s[node, order[node, place]] = now


def warm_arrivals_slow(order, block_s):
    """Twin of `warm_arrivals`."""
    arrival_s = np.empty(order.shape)
    np.put_along_axis(arrival_s, order, np.cumsum(block_s[order], axis=1), axis=1)
    return arrival_s
