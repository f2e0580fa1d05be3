"""Several chains side by side, each with its own source or all fed by one."""

from collections.abc import Sequence

import numpy as np

from workbench.errors import InputError
from workbench.records import whole
from workbench.transfer.policy.schedule import Schedule, check_cells, from_columns


def multi_chain(nodes: int, blocks: int, chains: int = 2, sources: int = 1) -> Schedule:
    """c chains carry the whole message to their own targets (BlitzScale §5.1, Figure 12).

    With one source (its single port gives every block to each chain's head in turn) a chain advances one block in c
    steps: c·m + ⌈targets/c⌉ - 1 steps if c divides the targets. With c sources each chain is an ordinary one.
    Targets join the chains round-robin, lowest number first. Several chains cost time but give several tails, and only
    a tail can serve while it loads.

    Parameters:
        nodes: all nodes, the sources included; nodes 0..sources-1 are the sources.
        chains: number of chains; at most as many as targets.
        sources: 1, or as many as chains.

    >>> multi_chain(9, 10, chains=2).steps, multi_chain(10, 10, chains=2, sources=2).steps
    (23, 13)
    """
    nodes, blocks = check_cells(nodes, blocks)
    members = chain_members(range(whole(sources, "sources", 1), nodes), chains, sources)
    pace = 1 if sources == chains else chains
    columns = []
    for chain, targets in enumerate(members):
        head = chain if sources == chains else 0
        hop, block = (grid.ravel() for grid in np.indices((len(targets), blocks)))
        path = np.array([head, *targets])
        start = 0 if sources == chains else chain
        columns.append((pace * block + start + hop, path[hop], path[hop + 1], block))
    gathered = (np.concatenate(column) for column in zip(*columns, strict=True))
    return from_columns("multi_chain", nodes, blocks, tuple(range(sources)), *gathered)


def chain_members(targets: Sequence[int], chains: int, sources: int = 1) -> list[list[int]]:
    """Targets of each chain from its head to its tail, dealt out round-robin.

    Raises:
        `InputError` for fewer targets than chains, or for a number of sources that is neither 1 nor that of chains.

    >>> chain_members([3, 4, 5, 6, 7], 2)
    [[3, 5, 7], [4, 6]]
    """
    chains, sources = whole(chains, "chains", 1), whole(sources, "sources", 1)
    if sources not in (1, chains):
        problem = f"is {sources} where {chains} chains start from 1 source or from {chains}"
        raise InputError(problem, "change sources", field="sources")
    if chains > len(targets):
        problem = f"is {chains} where {len(targets)} targets form 1 to {len(targets)} chains"
        raise InputError(problem, "change chains", field="chains")
    return [list(targets[chain::chains]) for chain in range(chains)]
