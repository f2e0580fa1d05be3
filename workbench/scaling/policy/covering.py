"""Who runs which block: a search for so many nodes that hold a whole copy together and share its blocks evenly."""

from collections.abc import Mapping, Sequence

PATIENCE = 5_000
"""Choices that are looked at before a search is given up, as if there were none: some tenths of a second."""


class _Cover:
    """Blocks given away so far, and what can still become of the rest."""

    def __init__(self, holders: Sequence[Sequence[int]], length: int):
        self.holders, self.length, self.blocks = holders, length, len(holders)
        self.least, self.above = divmod(self.blocks, length)
        self.holds: dict[int, int] = {}
        for block, nodes in enumerate(holders):
            for node in nodes:
                self.holds[node] = self.holds.get(node, 0) | 1 << block
        self.dead: set[tuple] = set()
        self.runs: list[int] = []
        self.counts: dict[int, int] = {}

    def room(self, node: int) -> int:
        """Further blocks that a node may run: up to the lower number, or one more for so many nodes."""
        have = self.counts.get(node, 0)
        if have == 0 and len(self.counts) == self.length:
            return 0
        taken = sum(count > self.least for count in self.counts.values())
        return max(0, self.least + (taken < self.above) - have)

    def state(self) -> tuple:
        """Equal where the rest can be given away alike: nodes with as many blocks, that hold the same, are alike."""
        block = len(self.runs)
        rest = ((self.counts.get(node, 0), held >> block) for node, held in self.holds.items() if self.room(node))
        taken = sum(count > self.least for count in self.counts.values())
        return block, len(self.counts), taken, tuple(sorted(one for one in rest if one[1]))

    def possible(self) -> bool:
        """Whether the rest might be given away: each node in use gets its lower number, each block finds a place.

        Any number of further nodes may be used here, so that a rest that passes can still fail.
        """
        block = len(self.runs)
        owed = sum(max(0, self.least - count) for count in self.counts.values())
        if owed + self.least * (self.length - len(self.counts)) > self.blocks - block:
            return False
        room = {}
        for node, held in self.holds.items():
            have, left = self.counts.get(node, 0), (held >> block).bit_count()
            if have + left >= self.least:
                room[node] = self.room(node)
            elif have:
                return False
        return _all_placed(self.holders[block:], room)

    def search(self) -> bool:
        """Whether the rest can be given away; if so, `runs` is whole."""
        block = len(self.runs)
        if block == self.blocks:
            return True
        state = self.state()
        if state in self.dead or len(self.dead) >= PATIENCE:
            return False
        alike: set[int] = set()
        for node in self.holders[block] if self.possible() else ():
            fresh = node not in self.counts
            if not self.room(node) or (fresh and self.holds[node] >> block in alike):
                continue
            self.counts[node] = self.counts.get(node, 0) + 1
            self.runs.append(node)
            if self.search():
                return True
            self.runs.pop()
            self.counts[node] -= 1
            if fresh:
                del self.counts[node]
                alike.add(self.holds[node] >> block)
        self.dead.add(state)
        return False


def even_cover(holders: Sequence[Sequence[int]], length: int) -> tuple[int, ...] | None:
    """The first choice of exactly `length` nodes that run all blocks, with numbers of blocks that differ by 1 at most.

    Blocks are given away in order, each to the first of its holders with which the rest can still be given away (a
    depth-first search, as in λScale's artifact; dead ends are remembered or foreseen, and of nodes that hold the same
    blocks and have none yet only the first is tried, none of which changes what is found). A search of more than
    `PATIENCE` dead ends is given up; that takes more than twenty blocks, of which nodes cannot have equally many.

    Parameters:
        holders: for each block, the nodes that hold it, the preferred first.
        length: of the pipeline.

    Returns:
        the node of each block; None where there is no such choice, or none was found with patience.

    >>> even_cover([[5, 6], [5], [6, 5], [5, 6]], 2), even_cover([[5], [5], [6]], 3)
    ((5, 5, 6, 6), None)
    """
    if len(holders) < length:
        return None
    cover = _Cover(holders, length)
    return tuple(cover.runs) if cover.search() else None


def _all_placed(holders: Sequence[Sequence[int]], room: Mapping[int, int]) -> bool:
    """Whether each block can go to one of its holders, none of which takes more than it has room for (matching)."""
    placed: dict[int, list[int]] = {node: [] for node, places in room.items() if places}

    def place(block: int, asked: set[int]) -> bool:
        for node in holders[block]:
            if node not in placed or node in asked:
                continue
            asked.add(node)
            if len(placed[node]) < room[node]:
                placed[node].append(block)
                return True
            for index, other in enumerate(placed[node]):
                if place(other, asked):
                    placed[node][index] = block
                    return True
        return False

    return all(place(block, set()) for block in range(len(holders)))
