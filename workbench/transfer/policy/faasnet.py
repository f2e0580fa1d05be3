"""FaaSNet's tree as λScale's artifact runs it: every node alternates between two children."""

import numpy as np

from workbench.records import whole
from workbench.transfer.policy.schedule import MOST_NODES, Schedule, check_cells, from_columns


def fibonacci_tree(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Parents and levels of the tree in which a first child lags its parent by one level and a second one by two.

    Level sizes are the Fibonacci numbers 1, 1, 2, 3, 5, … Nodes are numbered level by level, inside a level in depth-
    first order (first child before second). To 12 nodes this is the table that λScale's artifact holds
    (faasnet_transfer_strategy.py); the rule carries it on to any number.

    Returns:
        parent, level: int arrays of length `nodes`; the root has parent -1 and level 0.

    >>> [array.tolist() for array in fibonacci_tree(7)]
    [[-1, 0, 1, 0, 2, 1, 3], [0, 1, 2, 2, 3, 3, 3]]
    """
    nodes = whole(nodes, "nodes", 1, MOST_NODES)
    parent, level = np.full(nodes, -1), np.zeros(nodes, dtype=np.int64)
    levels = [[], [((), 0)]]  # an entry is (turns from the root, node); equal levels sort by turns
    count = 1
    while count < nodes:
        born = [((*turns, 0), node) for turns, node in levels[-1]] + [((*turns, 1), node) for turns, node in levels[-2]]
        placed = []
        for turns, above in sorted(born)[: nodes - count]:
            parent[count], level[count] = above, len(levels) - 1
            placed.append((turns, count))
            count += 1
        levels.append(placed)
    return parent, level


def faasnet_tree(nodes: int, blocks: int) -> Schedule:
    """FaaSNet's multicast: block c reaches a node of level v in step 2c + v - 1, so 2(m-1) + D(n) steps.

    D is the deepest level. The alternation is kept even where a node has one child only, as in the artifact; two nodes
    are the exception and take m steps. So are three nodes in a dataflow run, where nobody sits out an idle turn: m + 1.

    >>> faasnet_tree(8, 16).steps, faasnet_tree(2, 16).steps
    (34, 16)
    """
    nodes, blocks = check_cells(nodes, blocks)
    parent, level = fibonacci_tree(nodes)
    target, block = (grid.ravel() for grid in np.indices((nodes - 1, blocks)))
    target = target + 1
    pace = 2 if nodes > 2 else 1
    step = pace * block + level[target] - 1
    return from_columns("faasnet_tree", nodes, blocks, (0,), step, parent[target], target, block)
