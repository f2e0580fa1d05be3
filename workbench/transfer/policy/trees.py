"""Trees without FaaSNet's numbering: the binomial tree and the one-port binary tree."""

import numpy as np

from workbench.transfer.policy.schedule import Schedule, check_cells, from_columns


def binomial_tree(nodes: int, blocks: int) -> Schedule:
    """Whole messages double in stages: in stage s every node j < 2^s sends all blocks to node j + 2^s.

    m⌈log2 n⌉ steps; the tree of RDMC (Behrens et al. 2018), also known as whole-message recursive doubling.

    >>> binomial_tree(8, 4).steps
    12
    """
    nodes, blocks = check_cells(nodes, blocks)
    target, block = (grid.ravel() for grid in np.indices((nodes - 1, blocks)))
    target = target + 1
    stage = np.frexp(target)[1] - 1
    return from_columns(
        "binomial_tree", nodes, blocks, (0,), stage * blocks + block, target - (1 << stage), target, block
    )


def binary_tree(nodes: int, blocks: int) -> Schedule:
    """A heap-shaped binary tree whose nodes have one port: a block goes to the left child, then to the right one.

    Node v has the children 2v+1 and 2v+2 and sends one block a step in block order, as soon as it holds it. Because
    the root needs two steps a block, every node v receives block j in step 2j + d(v) - 1, where a left turn on the way
    from the root counts 1 in d(v) and a right turn 2; with two nodes the root has one child and needs one step a block.

    >>> binary_tree(7, 2).steps
    6
    """
    nodes, blocks = check_cells(nodes, blocks)
    target, block = (grid.ravel() for grid in np.indices((nodes - 1, blocks)))
    target = target + 1
    pace = 2 if nodes > 2 else 1
    step = pace * block + heap_lag(target) - 1
    return from_columns("binary_tree", nodes, blocks, (0,), step, (target - 1) // 2, target, block)


def heap_lag(node: np.ndarray) -> np.ndarray:
    """Steps from the root to a heap-numbered node when a left turn takes one step and a right turn two."""
    depth = np.frexp(node + 1)[1] - 1
    return depth + np.bitwise_count(node + 1) - 1
