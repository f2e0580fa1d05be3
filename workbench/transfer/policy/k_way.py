"""Several sources at once: sub-groups that send the same blocks in rotated orders (λScale's Algorithm 1)."""

from typing import Literal, get_args

import numpy as np

from workbench.errors import UnknownName
from workbench.records import whole
from workbench.transfer.policy.binomial import binomial_pipeline
from workbench.transfer.policy.schedule import (
    LARGEST_COUNT,
    MOST_CELLS,
    MOST_NODES,
    Schedule,
    check_cells,
    from_columns,
)

BlockOrder = Literal["contiguous", "strided", "half", "naive"]
"""How sub-groups order the blocks. *contiguous*: chunks of neighbouring blocks, rotated (the paper); *strided*: chunk i
holds blocks i, i+k, i+2k, … (the artifact); *half*: strided with half as many chunks; *naive*: all groups alike."""


def k_way(nodes: int, blocks: int, sources: int = 2, order: BlockOrder = "contiguous", parts: int = 1) -> Schedule:
    """k complete copies feed k sub-groups, each a binomial pipeline over its own rotation of the blocks.

    The destinations hold one complete copy *jointly* after ⌈b/k⌉ steps instead of b; that every node holds everything
    still takes b - 1 + ⌈log2 L⌉ steps for the largest sub-group of L nodes (λScale §4.2).

    Parameters:
        nodes: all nodes, the sources included; nodes 0..sources-1 are the sources.
        blocks: blocks that are ordered and rotated (execution blocks where `parts` > 1).
        sources: number of complete copies k, at least 1 and below `nodes`.
        order: see `BlockOrder`.
        parts: transfer blocks that each block is sent as; block e becomes blocks e·parts to e·parts + parts - 1.

    Raises:
        `InputError` for sizes that leave nothing to do, `UnknownName` for an unknown order.

    >>> k_way(8, 16, sources=2).steps
    17
    """
    nodes, blocks = check_cells(nodes, blocks)
    check_cells(nodes, blocks * whole(parts, "parts", 1, LARGEST_COUNT // blocks))
    columns = []
    for group, members in enumerate(sub_groups(nodes, sources)):
        if len(members) == 1:
            continue
        sent = sent_order(group, sources, blocks, order, parts)
        plan = binomial_pipeline(len(members), len(sent))
        who = np.array(members)
        columns.append((plan.step, who[plan.source], who[plan.target], sent[plan.block]))
    gathered = (np.concatenate(column) for column in zip(*columns, strict=True))
    return from_columns("k_way", nodes, blocks * parts, tuple(range(sources)), *gathered)


def sub_groups(nodes: int, sources: int) -> list[list[int]]:
    """The nodes of each sub-group, its source first; sizes ⌊N/k⌋ or one more, the larger groups first.

    >>> sub_groups(7, 3)
    [[0, 3, 4], [1, 5], [2, 6]]
    """
    nodes = whole(nodes, "nodes", 2, MOST_NODES)
    sources = whole(sources, "sources", 1, nodes - 1)
    small, larger = divmod(nodes, sources)
    groups, first = [], sources
    for group in range(sources):
        added = small - 1 + (group < larger)
        groups.append([group, *range(first, first + added)])
        first += added
    return groups


def block_order(group: int, sources: int, blocks: int, order: BlockOrder = "contiguous") -> list[int]:
    """The order in which a sub-group sends the blocks: its own chunk first, then the next ones, cyclically.

    >>> block_order(1, 2, 4), block_order(1, 2, 4, "strided")
    ([2, 3, 0, 1], [1, 3, 0, 2])
    """
    sources = whole(sources, "sources", 1)
    group, blocks = whole(group, "group", 0, sources - 1), whole(blocks, "blocks", 1, MOST_CELLS)
    check_order(order)
    if order == "naive":
        return list(range(blocks))
    chunks = max(1, sources // 2) if order == "half" else sources
    if order == "contiguous":
        length = -(-blocks // chunks)
        parts = [range(length * chunk, min(length * (chunk + 1), blocks)) for chunk in range(chunks)]
    else:
        parts = [range(chunk, blocks, chunks) for chunk in range(chunks)]
    first = group % chunks
    return [block for part in parts[first:] + parts[:first] for block in part]


def sent_order(group: int, sources: int, blocks: int, order: BlockOrder, parts: int) -> np.ndarray:
    """`block_order` in transfer blocks, of which each block makes `parts` neighbouring ones, int (blocks x parts,)."""
    return (np.array(block_order(group, sources, blocks, order))[:, None] * parts + np.arange(parts)).ravel()


def check_order(order: str) -> None:
    """Refuse a block order that does not exist."""
    if order not in get_args(BlockOrder):
        raise UnknownName("block order", order, get_args(BlockOrder))
