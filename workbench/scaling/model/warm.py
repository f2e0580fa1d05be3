"""Starts from host memory: nodes load the same model in rotated orders, and hold it jointly long before each has it."""

from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.records import positive, whole
from workbench.scaling.kernels.warm import warm_arrivals
from workbench.scaling.policy import Pipeline, form_searched, halving_lengths, warm_order
from workbench.transfer.kernels.coverage import joint_copy, last_arrivals


class WarmStart(NamedTuple):
    """Nodes that load from their own hosts.

    Attributes:
        arrival_s: float64[nodes, blocks], when each node holds each block.
        joint_s: when they hold everything together.
        complete_s: float64[nodes], when each holds everything.
        pipelines: in the order in which they form.
    """

    arrival_s: np.ndarray
    joint_s: float
    complete_s: np.ndarray
    pipelines: tuple[Pipeline, ...]


def warm_start(nodes: int, block_bytes, bytes_per_s: float) -> WarmStart:
    """When do nodes that load from their own memory serve jointly, and when alone?

    Node i of s starts with block i, i + s, …, so a joint copy is there after ⌈b/s⌉ block loads, about 1/s of the time
    that all blocks take (λScale §5; orders of the artifact).

    Parameters:
        nodes: that load at a time.
        block_bytes: of each block in the order of execution.
        bytes_per_s: from a host's memory to its GPU.

    >>> two = warm_start(2, [1.0] * 8, 1.0)
    >>> two.joint_s, two.complete_s.tolist(), [one.forms for one in two.pipelines]
    (4.0, [8.0, 8.0], [4.0])
    """
    nodes = whole(nodes, "nodes", 1, 4096)
    size = np.asarray(block_bytes, dtype=float)
    if size.ndim != 1 or not size.size or not (np.isfinite(size) & (size > 0)).all():
        raise InputError("are no sizes of blocks", "give finite numbers above 0", field="block_bytes")
    order = np.array([warm_order(place, nodes, size.size) for place in range(nodes)])
    arrival, complete = np.empty(order.shape), np.empty(nodes)
    warm_arrivals(order, size / positive(bytes_per_s, "bytes_per_s"), arrival)
    last_arrivals(arrival, complete)
    pipelines = form_searched(arrival, 0, halving_lengths(nodes, size.size))
    return WarmStart(arrival, float(joint_copy(arrival, 0)), complete, tuple(pipelines))
