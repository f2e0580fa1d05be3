"""A multicast schedule: which node sends which block to which node in which step."""

from typing import NamedTuple

import numpy as np

from workbench.errors import UserError


class Schedule(NamedTuple):
    """Transfers of equal blocks among nodes, in steps of the one-port model (Bar-Noy and Kipnis 1994).

    In a step a node sends at most one block and receives at most one, and sends only what it held before the step.
    The four arrays have one entry a transfer, sorted by (step, source); `block` indexes 0..blocks-1.

    Attributes:
        name: the schedule's name in the table of schedules.
        nodes: number of nodes, the initial holders included; nodes are numbered 0..nodes-1.
        blocks: number of equal blocks that the message is cut into.
        holders: nodes that hold every block before step 0.
        step, source, target, block: int32 arrays of equal length.
    """

    name: str
    nodes: int
    blocks: int
    holders: tuple[int, ...]
    step: np.ndarray
    source: np.ndarray
    target: np.ndarray
    block: np.ndarray

    @property
    def steps(self) -> int:
        """Number of steps until the last transfer has ended."""
        return int(self.step[-1]) + 1 if len(self.step) else 0

    def send_lists(self) -> list[list[tuple[int, int]]]:
        """For every node, its sends in order as (target, block)."""
        lists: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        for source, target, block in zip(self.source.tolist(), self.target.tolist(), self.block.tolist(), strict=True):
            lists[source].append((target, block))
        return lists

    def receive_lists(self) -> list[list[tuple[int, int]]]:
        """For every node, its receptions in order as (source, block)."""
        lists: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        for source, target, block in zip(self.source.tolist(), self.target.tolist(), self.block.tolist(), strict=True):
            lists[target].append((source, block))
        return lists


def from_transfers(
    name: str, nodes: int, blocks: int, holders: tuple[int, ...], transfers: np.ndarray | list[tuple]
) -> Schedule:
    """Make a schedule from rows (step, source, target, block) in any order."""
    rows = np.asarray(transfers, dtype=np.int32).reshape(-1, 4)
    return from_columns(name, nodes, blocks, holders, *rows.T)


def from_columns(
    name: str,
    nodes: int,
    blocks: int,
    holders: tuple[int, ...],
    step: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    block: np.ndarray,
) -> Schedule:
    """Make a schedule from four columns of equal length, one entry a transfer, in any order."""
    columns = [np.asarray(column, dtype=np.int32) for column in (step, source, target, block)]
    by_step = np.lexsort((columns[1], columns[0]))
    return Schedule(name, nodes, blocks, holders, *(column[by_step] for column in columns))


def check_size(nodes: int, blocks: int) -> None:
    """Refuse a multicast that has nobody to send to or nothing to send."""
    if nodes < 2:
        raise UserError(f"A multicast needs at least 2 nodes, the source included, got {nodes}; raise nodes.")
    if blocks < 1:
        raise UserError(f"A multicast needs at least 1 block, got {blocks}; raise blocks.")
