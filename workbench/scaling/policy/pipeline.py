"""What an execution pipeline is: nodes that hold a copy of the model together, and who of them runs which block."""

from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.records import whole


class Pipeline(NamedTuple):
    """Nodes that serve together.

    Attributes:
        nodes: in the order of the first block that each runs; a node without a block is not among them.
        forms: when they hold every block together, in the unit of the arrivals (steps or seconds).
        runs: the node that runs each block, in the order of execution.
    """

    nodes: tuple[int, ...]
    forms: float
    runs: tuple[int, ...]

    @property
    def in_flight(self) -> int:
        """Most requests that it serves at a time: one a node, each pinned to the pipeline for all its tokens."""
        return len(self.nodes)


def executable(arrival: np.ndarray, parts: int = 1) -> np.ndarray:
    """When each node can run each block: when the last of the block's transfer parts is there, (nodes, blocks).

    Parameters:
        arrival: (nodes, blocks x parts), when a node holds each part.
        parts: transfer blocks of a block, neighbours.

    >>> executable(np.array([[1, 4, 2, 3]]), parts=2).tolist()
    [[4, 3]]
    """
    arrival, parts = checked_arrival(arrival), whole(parts, "parts", 1)
    if arrival.shape[1] % parts:
        raise InputError(
            f"has {arrival.shape[1]} columns, no multiple of {parts} parts", "give all parts", field="arrival"
        )
    return arrival.reshape(arrival.shape[0], -1, parts).max(axis=2)


def checked_arrival(arrival: np.ndarray) -> np.ndarray:
    """Arrivals of every block at every node, refused where they are no table of finite numbers of 0 or more."""
    arrival = np.asarray(arrival)
    if arrival.ndim != 2 or not arrival.size or arrival.dtype.kind not in "iuf":
        remedy = "give one row a node and one column a block"
        raise InputError(f"has the shape {arrival.shape}", remedy, field="arrival")
    if not (np.isfinite(arrival) & (arrival >= 0)).all():
        raise InputError("holds a block that never arrives", "give finite times of 0 or more", field="arrival")
    return arrival
