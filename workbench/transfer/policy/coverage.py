"""When one node of every sub-group suffices to hold a whole copy: the first execution pipeline that can form."""

from collections.abc import Sequence

import numpy as np


def first_pipeline(arrival: np.ndarray, groups: Sequence[Sequence[int]]) -> int:
    """Least number of steps after which some choice of one destination per sub-group holds all blocks.

    This is when λScale's Algorithm 2 can launch its first pipeline (λScale §4.2 and §4.3).

    Parameters:
        arrival: int (nodes, blocks), steps after which a node holds a block.
        groups: destinations of each sub-group, the sources left out; empty groups do not count.
    """
    members = [list(group) for group in groups if len(group)]
    moments = np.unique(np.concatenate([arrival[group].ravel() for group in members]))
    low, high = 0, len(moments) - 1
    while low < high:
        middle = (low + high) // 2
        if _covers(arrival <= moments[middle], members):
            high = middle
        else:
            low = middle + 1
    return int(moments[low])


def _covers(held: np.ndarray, groups: list[list[int]]) -> bool:
    """Whether one node per group can be chosen so that together they hold every block."""
    masks = [{int("".join("01"[bit] for bit in held[node].tolist()), 2) for node in group} for group in groups]
    return _search((1 << held.shape[1]) - 1, masks)


def _search(missing: int, groups: list[set[int]]) -> bool:
    """Branch on the missing block that the fewest nodes of the groups left can give."""
    if not missing:
        return True
    options: list[tuple[int, int]] | None = None
    rest = missing
    while rest:
        block = rest & -rest
        rest ^= block
        able = [(index, mask) for index, group in enumerate(groups) for mask in group if mask & block]
        if options is None or len(able) < len(options):
            options = able
            if not able:
                return False
    return any(_search(missing & ~mask, groups[:index] + groups[index + 1 :]) for index, mask in options)
