"""Who runs which block: a search for so many nodes that hold a whole copy together and share its blocks evenly."""

from collections.abc import Sequence


def even_cover(holders: Sequence[Sequence[int]], length: int) -> tuple[int, ...] | None:
    """The first choice of exactly `length` nodes that run all blocks, with numbers of blocks that differ by 1 at most.

    Blocks are given away in order, each to the first of its holders with which the rest can still be given away (a
    depth-first search, as in λScale's artifact; dead ends are remembered, and of nodes that hold the same blocks and
    have none yet only the first is tried, neither of which changes what is found).

    Parameters:
        holders: for each block, the nodes that hold it, the preferred first.
        length: of the pipeline.

    Returns:
        the node of each block; None where there is no such choice.

    >>> even_cover([[5, 6], [5], [6, 5], [5, 6]], 2), even_cover([[5], [5], [6]], 3)
    ((5, 5, 6, 6), None)
    """
    blocks = len(holders)
    least, above = divmod(blocks, length)
    if least == 0:
        return None
    holds: dict[int, int] = {}
    for block, nodes in enumerate(holders):
        for node in nodes:
            holds[node] = holds.get(node, 0) | 1 << block
    dead: set[tuple[int, frozenset]] = set()
    runs: list[int] = []
    counts: dict[int, int] = {}

    def room(node: int) -> bool:
        """Whether a node may run one more block: up to the lower number, or one more for so many nodes."""
        have = counts.get(node, 0)
        if have == 0:
            return len(counts) < length
        return have < least or (have == least and sum(count > least for count in counts.values()) < above)

    def search(block: int) -> bool:
        if block == blocks:
            return True
        owed = sum(max(0, least - count) for count in counts.values()) + least * (length - len(counts))
        state = (block, frozenset(counts.items()))
        if owed > blocks - block or state in dead:
            return False
        alike: set[int] = set()
        for node in holders[block]:
            fresh = node not in counts
            if not room(node) or (fresh and holds[node] >> block in alike):
                continue
            counts[node] = counts.get(node, 0) + 1
            runs.append(node)
            if search(block + 1):
                return True
            runs.pop()
            counts[node] -= 1
            if fresh:
                del counts[node]
                alike.add(holds[node] >> block)
        dead.add(state)
        return False

    return tuple(runs) if search(0) else None
