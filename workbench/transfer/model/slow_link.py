"""What one slow link costs: little in a binomial pipeline, everything in a chain."""

import numpy as np

from workbench.errors import InputError
from workbench.records import positive, whole
from workbench.transfer.policy.schedule import LARGEST_COUNT, MOST_NODES


def slow_link_share(nodes: int, slowness: np.ndarray | float) -> np.ndarray | float:
    """Share of nominal throughput that a binomial pipeline keeps with one slow directed link: l / (l - 1 + B/B').

    With n = 2^l nodes every link is used in one step of l, so only that step grows (many blocks).

    Parameters:
        nodes: n, a power of two.
        slowness: B'/B, bandwidth of the slow link over that of the others, above 0 and at most 1: a link that is faster
            than the others speeds up nothing.

    Raises:
        `InputError` when n is no power of two; links are then used unequally often, so run the schedule: `run_times`
            or `simulate` with that link's transfers slower. Also for a slowness that is not above 0, or is above 1.

    >>> [round(slow_link_share(n, 0.5), 3) for n in (8, 16, 64)]
    [0.75, 0.8, 0.857]
    """
    nodes = whole(nodes, "nodes", 2, MOST_NODES)
    if nodes & (nodes - 1):
        problem = f"is {nodes} where the formula is for 2, 4, 8, … nodes"
        raise InputError(problem, "take a power of two, or run the schedule on its links", field="nodes")
    dimensions = nodes.bit_length() - 1
    return dimensions / (dimensions - 1 + 1 / _checked(slowness))


def slow_link_share_of_chain(nodes: int, blocks: int, slowness: np.ndarray | float) -> np.ndarray | float:
    """Share of nominal throughput that a chain keeps: (m + n - 2) / (m B/B' + n - 2), near B'/B for many blocks.

    Raises:
        `InputError` for numbers that are no counts, or a slowness that is not above 0, or is above 1.
    """
    nodes, blocks = whole(nodes, "nodes", 2, MOST_NODES), whole(blocks, "blocks", 1, LARGEST_COUNT)
    return (blocks + nodes - 2) / (blocks / _checked(slowness) + nodes - 2)


def _checked(slowness: np.ndarray | float) -> np.ndarray | float:
    if isinstance(slowness, np.ndarray) and slowness.ndim:
        return np.array([_share(value) for value in slowness.ravel()]).reshape(slowness.shape)
    return _share(slowness)


def _share(slowness: float) -> float:
    if (share := positive(slowness, "slowness")) > 1:
        raise InputError(
            f"is {share:g}", "give the slow link's bandwidth over the others', at most 1", field="slowness"
        )
    return share
