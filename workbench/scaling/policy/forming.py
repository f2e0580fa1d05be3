"""When execution pipelines form, and of whom: as planned from sub-groups, or as found among whoever has blocks."""

from collections.abc import Sequence

import numpy as np

from workbench.errors import UserError
from workbench.records import whole
from workbench.scaling.policy.covering import even_cover
from workbench.scaling.policy.pipeline import Pipeline, checked_arrival


def form_planned(ready: np.ndarray, planned: Sequence[Sequence[int]]) -> list[Pipeline]:
    """Planned pipelines, each from the moment on at which its members jointly hold all blocks (λScale §4.3).

    Who of several holders runs a block, the paper leaves open. Here the rarest blocks are given away first, each to the
    holder with the fewest, of equals to the one that got it first.

    Parameters:
        ready: (nodes, blocks), when each node can run each block.
        planned: the members of each pipeline, see `policy.group_pipelines`.

    Returns:
        the pipelines in the order in which they form; a node that has no block to run is left out of its own.

    >>> form_planned(np.array([[0, 0], [1, 3], [3, 2]]), [(1, 2)])
    [Pipeline(nodes=(1, 2), forms=2, runs=(1, 2))]
    """
    ready = checked_arrival(ready)
    found = []
    for members in planned:
        members = [whole(node, "planned", 0, len(ready) - 1) for node in members]
        if not members:
            raise UserError("planned: a pipeline without members; name at least one node in each.")
        inside = ready[list(members)]
        forms = inside.min(axis=0).max().item()
        found.append(_pipeline(_spread(_holders(ready, members, forms)), forms))
    return sorted(found, key=lambda pipeline: pipeline.forms)


def form_searched(ready: np.ndarray, sources: int, lengths: Sequence[int]) -> list[Pipeline]:
    """Pipelines of given lengths, each as soon as any free nodes make one (λScale's artifact).

    Whenever blocks have landed, the next length is looked for among the nodes that are in no pipeline yet, until none
    is found: see `even_cover`. A node joins one pipeline at most.

    Parameters:
        ready: (nodes, blocks), when each node can run each block.
        sources: nodes 0..sources-1 have everything and join none.
        lengths: see `policy.halving_lengths`.

    >>> form_searched(np.array([[0, 0], [1, 3], [3, 2]]), 1, [2])
    [Pipeline(nodes=(1, 2), forms=2, runs=(1, 2))]
    """
    ready = checked_arrival(ready)
    sources = whole(sources, "sources", 0, len(ready))
    free, found = list(range(sources, len(ready))), []
    wanted = [whole(length, "lengths", 1) for length in lengths]
    for instant in np.unique(ready[sources:]).tolist():
        while wanted and (runs := even_cover(_holders(ready, free, instant), wanted[0])) is not None:
            found.append(_pipeline(runs, instant))
            free = [node for node in free if node not in runs]
            del wanted[0]
    return found


def _holders(ready: np.ndarray, nodes: Sequence[int], instant: float) -> list[list[int]]:
    """For each block, the nodes that hold it at an instant, in the order in which they got it."""
    holders = []
    for column in ready.T:
        there = [node for node in nodes if column[node] <= instant]
        holders.append(sorted(there, key=lambda node: (column[node], node)))
    return holders


def _spread(holders: list[list[int]]) -> tuple[int, ...]:
    """A node for each block, the rarest first, each the one with the fewest blocks so far."""
    runs, counts = [0] * len(holders), dict.fromkeys((node for nodes in holders for node in nodes), 0)
    for block in sorted(range(len(holders)), key=lambda block: len(holders[block])):
        node = min(holders[block], key=counts.__getitem__)
        runs[block] = node
        counts[node] += 1
    return tuple(runs)


def _pipeline(runs: tuple[int, ...], forms: float) -> Pipeline:
    return Pipeline(tuple(dict.fromkeys(runs)), forms, runs)
