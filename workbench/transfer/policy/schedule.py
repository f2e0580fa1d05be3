"""A multicast schedule: which node sends which block to which node in which step."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.records import whole

MOST_NODES = 65_536
LARGEST_COUNT = 2**31 - 1
MOST_CELLS = 50_000_000
"""Most nodes times blocks that are laid out one by one; beyond that memory would not hold them."""

COLUMNS = ("step", "source", "target", "block")


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


def from_transfers(
    name: str, nodes: int, blocks: int, holders: tuple[int, ...], transfers: np.ndarray | list[tuple]
) -> Schedule:
    """Make a schedule from rows (step, source, target, block) in any order.

    Raises:
        `InputError` for rows that are not four whole numbers each. Whether the schedule works, `check` says.
    """
    try:
        rows = np.asarray(transfers) if len(transfers) else np.zeros((0, 4), dtype=np.int32)
    except (TypeError, ValueError, OverflowError):
        rows = np.zeros(0)
    if rows.ndim != 2 or rows.shape[1] != 4:
        remedy = "give rows of four whole numbers: step, source, target and block"
        raise InputError("the transfers are not rows of equal length", remedy)
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
    """Make a schedule from four columns of equal length, one entry a transfer, in any order.

    Raises:
        `InputError` for columns that differ in length or hold anything but whole numbers of 32 bits.
    """
    columns = [column_of(*named) for named in zip(COLUMNS, (step, source, target, block), strict=True)]
    check_lengths(columns)
    by_step = np.lexsort((columns[1], columns[0]))
    return Schedule(name, nodes, blocks, holders, *(column[by_step] for column in columns))


def column_of(name: str, values: np.ndarray) -> np.ndarray:
    """One column of a schedule as int32, or an `InputError` where it cannot be one."""
    column = np.asarray(values)
    if column.shape == (0,):
        return np.zeros(0, dtype=np.int32)  # an empty list has no kind of its own
    if column.ndim != 1 or column.dtype.kind not in "iu":
        raise InputError("is not a column of whole numbers", "give one whole number a transfer", field=name)
    wide = (column < -(2**31)) | (column >= 2**31)
    if wide.any():
        row = int(np.argmax(wide))
        raise InputError(f"is {column[row]}", "give a number of 32 bits", row=row + 1, field=name)
    return column.astype(np.int32)


def check_lengths(columns: Sequence[np.ndarray]) -> None:
    """Refuse columns of a schedule that differ in length."""
    if len({len(column) for column in columns}) > 1:
        raise InputError("the columns step, source, target and block differ in length", "give one entry a transfer")


def check_size(nodes: int, blocks: int) -> tuple[int, int]:
    """The size of a multicast as whole numbers, or an `InputError` where it is none that a multicast can have."""
    return whole(nodes, "nodes", 2, MOST_NODES), whole(blocks, "blocks", 1, LARGEST_COUNT)


def check_cells(nodes: int, blocks: int) -> tuple[int, int]:
    """As `check_size`, for what lays out every block of every node: an `InputError` also where memory is too small."""
    nodes, blocks = check_size(nodes, blocks)
    if nodes * blocks > MOST_CELLS:
        problem = f"{blocks:,} blocks on {nodes:,} nodes are more than the {MOST_CELLS:,} that can be laid out"
        raise InputError(problem, "take fewer blocks or nodes")
    return nodes, blocks
