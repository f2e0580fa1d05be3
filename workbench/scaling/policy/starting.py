"""From where a start takes its weights: copies on GPUs, in host memory, or from other nodes over the network."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from workbench.records import whole
from workbench.transfer.policy import block_order

Senders = Literal["gpu", "gpu or host"]
"""Whose copies are sent to cold nodes. *gpu*: replicas on GPUs only, and where there are none every cold node reads its
own SSD (λScale's artifact); *gpu or host*: where there are none, copies in host memory (the paper, λScale §5)."""


class Start(NamedTuple):
    """How so many nodes get their weights.

    Attributes:
        warm: nodes that load from their own host's memory, and form pipelines among themselves.
        cold: nodes that others send the weights to, in a second operation with pipelines of its own.
        sources: nodes that send, at most one for each cold node.
        ssd: nodes that read their own SSD since nobody has a copy to send.
    """

    warm: tuple[int, ...]
    cold: tuple[int, ...]
    sources: tuple[int, ...]
    ssd: tuple[int, ...]


def allocation_order(free: Iterable[int], cached: Iterable[int]) -> list[int]:
    """Free nodes in the order in which they are taken: those with a host copy first, each kind by number.

    >>> allocation_order([4, 1, 3, 2], [3, 2, 9])
    [2, 3, 1, 4]
    """
    hosts = set(cached)
    return sorted(free, key=lambda node: (node not in hosts, node))


def locality_start(
    wanted: int, free: Sequence[int], cached: Sequence[int], replicas: Sequence[int], senders: Senders = "gpu or host"
) -> Start:
    """Which nodes start how: host copies over PCIe, the rest by multicast with k = min(copies, cold nodes).

    Parameters:
        wanted: nodes to add; as many as are free at most.
        free: nodes without work.
        cached: nodes whose host memory holds the model, free or not.
        replicas: nodes whose GPUs hold it and serve.
        senders: see `Senders`.

    >>> locality_start(4, [2, 3, 4, 5, 6], cached=[5], replicas=[0, 1])
    Start(warm=(5,), cold=(2, 3, 4), sources=(0, 1), ssd=())
    >>> locality_start(3, [2, 3, 4], cached=[3], replicas=[], senders="gpu").ssd
    (2, 4)
    """
    taken = allocation_order(free, cached)[: whole(wanted, "wanted")]
    hosts = set(cached)
    warm = tuple(node for node in taken if node in hosts)
    rest = tuple(node for node in taken if node not in hosts)
    copies = sorted(replicas) or (sorted(cached) if senders == "gpu or host" else [])
    if not copies:
        return Start(warm, (), (), rest)
    return Start(warm, rest, tuple(copies[: len(rest)]), ())


def warm_order(place: int, nodes: int, blocks: int) -> list[int]:
    """The order in which one of several nodes loads blocks from its host's memory: rotated strides.

    Node i of s starts at block i, i + s, …, then goes on with the next node's blocks, so that the nodes hold a first
    joint copy after ⌈b/s⌉ block loads (λScale's artifact).

    >>> warm_order(1, 2, 8)
    [1, 3, 5, 7, 0, 2, 4, 6]
    """
    nodes, blocks = whole(nodes, "nodes", 1), whole(blocks, "blocks", 1)
    place, chunks = whole(place, "place", 0, nodes - 1), min(nodes, blocks)
    return block_order(place % chunks, chunks, blocks, "strided")
