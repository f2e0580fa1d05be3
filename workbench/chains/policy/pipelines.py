"""Which of several servers runs which block while they load: as few hops as can be."""

from collections.abc import Sequence

import numpy as np


def fewest_hops(ready: np.ndarray, members: Sequence[int]) -> tuple[int, list[int]]:
    """When do servers hold all blocks jointly, and who then runs which, so that a job changes servers least often?

    Whoever holds the most blocks in a row from the next one on runs them: no other choice has fewer rows.

    Parameters:
        ready: int64 (servers, blocks), when each holds each.
        members: who is asked, one server at least.

    Returns:
        the first instant at which each block is held, and the server of each block.

    >>> fewest_hops(np.array([[9, 1, 1, 2], [1, 1, 9, 3]]), [0, 1])
    (2, [1, 1, 0, 0])
    """
    forms = int(ready[list(members)].min(axis=0).max())
    runs: list[int] = []
    while len(runs) < ready.shape[1]:
        rows = {node: np.append(ready[node, len(runs) :] > forms, True).argmax() for node in members}
        node = max(members, key=rows.__getitem__)
        runs += [node] * int(rows[node])
    return forms, runs
