"""Who comes first: the node order for chains over unequal links, and schedules under another numbering."""

from collections.abc import Sequence

import numpy as np

from workbench.errors import UserError
from workbench.transfer.policy.schedule import Schedule, from_columns


def by_bandwidth(bytes_per_s: Sequence[float], sources: int = 1) -> list[int]:
    """Nodes in the order in which a chain should visit them: sources first, then by decreasing bandwidth.

    Position k of a chain is limited by the slowest link so far, so a faster node loses nothing by going first and gains
    when a slower one goes behind it (BlitzScale §5.1, Figure 13). Ties go to the lower number.

    Parameters:
        bytes_per_s: bandwidth of each node, one entry a node, the sources (0..sources-1) included.
        sources: how many of the first nodes are sources and keep their places.

    >>> by_bandwidth([1e9, 12.5e9, 25e9, 12.5e9])
    [0, 2, 1, 3]
    """
    targets = range(sources, len(bytes_per_s))
    return [*range(sources), *sorted(targets, key=lambda node: (-bytes_per_s[node], node))]


def renumber(schedule: Schedule, order: Sequence[int]) -> Schedule:
    """The same schedule with node `order[p]` in the place of node p.

    Raises:
        `UserError` when `order` is not a permutation of the nodes.
    """
    place = np.asarray(order, dtype=np.int64)
    if sorted(place.tolist()) != list(range(schedule.nodes)):
        raise UserError(f"An order names each of the {schedule.nodes} nodes once, got {list(order)}; correct it.")
    holders = tuple(sorted(int(place[node]) for node in schedule.holders))
    moved = (schedule.step, place[schedule.source], place[schedule.target], schedule.block)
    return from_columns(schedule.name, schedule.nodes, schedule.blocks, holders, *moved)
