"""Which nodes are to make a pipeline, decided before the first block arrives."""

from collections.abc import Sequence

from workbench.records import whole


def group_pipelines(groups: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """λScale's Algorithm 2: pipelines with one node of every sub-group, as long as sub-groups have nodes left.

    While several sub-groups have nodes left, the smallest rest says how many pipelines are made of the next node of
    each of them; what then is left of a single one makes one pipeline (λScale §4.3). Where sub-groups are equal every
    pipeline has all chunks of the model.

    Parameters:
        groups: the destinations of each sub-group in order, without its source.

    >>> group_pipelines([[2, 3, 4], [5, 6]])
    [(2, 5), (3, 6), (4,)]
    """
    left = [list(group) for group in groups if len(group)]
    planned = []
    while left:
        if len(left) == 1:
            planned.append(tuple(left[0]))
            break
        for _ in range(min(map(len, left))):
            planned.append(tuple(group.pop(0) for group in left))
        left = [group for group in left if group]
    return planned


def halving_lengths(destinations: int, blocks: int) -> list[int]:
    """How long the pipelines of λScale's artifact are: as many as fit of one node a block, then of half as many, …, 1.

    Parameters:
        destinations: nodes that are to be filled.
        blocks: that a copy is run as.

    >>> halving_lengths(11, 8), halving_lengths(7, 8)
    ([8, 2, 1], [4, 2, 1])
    """
    left, length = whole(destinations, "destinations"), whole(blocks, "blocks", 1)
    lengths = []
    while left and length:
        lengths += [length] * (left // length)
        left %= length
        length //= 2
    return lengths
