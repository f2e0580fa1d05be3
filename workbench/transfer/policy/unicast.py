"""Schedules without forwarding trees: one after the other, down a chain, round a ring."""

import numpy as np

from workbench.records import whole
from workbench.transfer.policy.schedule import LARGEST_COUNT, Schedule, check_cells, from_columns


def sequential(nodes: int, blocks: int) -> Schedule:
    """The source sends the whole message to node 1, then to node 2, and so on: m(n-1) steps.

    The star of unicasts that every other schedule is measured against; nobody forwards (RDMC's sequential schedule,
    Behrens et al. 2018).

    >>> sequential(3, 2).send_lists()
    [[(1, 0), (1, 1), (2, 0), (2, 1)], [], []]
    """
    nodes, blocks = check_cells(nodes, blocks)
    step = np.arange(blocks * (nodes - 1))
    return from_columns("sequential", nodes, blocks, (0,), step, np.zeros_like(step), 1 + step // blocks, step % blocks)


def chain(nodes: int, blocks: int) -> Schedule:
    """Node j passes block t-j to node j+1 in step t: m + n - 2 steps (RDMC; BlitzScale §5.1).

    >>> chain(4, 10).steps
    12
    """
    return _chain("chain", nodes, blocks)


def ring_broadcast(nodes: int, blocks: int, slices: int = 8) -> Schedule:
    """Broadcast round a ring, as collective libraries do for large messages: a chain of many small slices.

    Every block travels as `slices` slices, so that the schedule has blocks x slices blocks and a step lasts 1/slices
    of a block's time: the more slices, the closer to one message time for any number of nodes (NCCL's ring).
    """
    _, blocks = check_cells(nodes, blocks)
    return _chain("ring_broadcast", nodes, blocks * whole(slices, "slices", 1, LARGEST_COUNT // blocks))


def _chain(name: str, nodes: int, blocks: int) -> Schedule:
    nodes, blocks = check_cells(nodes, blocks)
    source, block = (grid.ravel() for grid in np.indices((nodes - 1, blocks)))
    return from_columns(name, nodes, blocks, (0,), source + block, source, source + 1, block)
