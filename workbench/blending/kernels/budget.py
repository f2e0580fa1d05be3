"""Which nodes are opened when a budget of prefix tokens is dealt out from the root down (the paper's Algorithm 2)."""

import numpy as np

from workbench.jit import kernel


@kernel
def open_by_budget(first, children, depth, budget_tokens, pieces):
    """Fill the nodes that stay whole, from left to right; returns how many.

    Parameters:
        first, children: the tree's children. depth: int64[v], tokens from the root to the node's end.
        budget_tokens: prefix tokens that may be computed again.
        pieces: int32[v], filled from the front.

    A node whose prefix, once a child, costs more than its budget stays whole; otherwise its children share the budget
    evenly. A node without children stays whole (as printed it would be lost).
    """
    nodes = first.size - 1
    stack, share = np.empty(nodes, np.int32), np.empty(nodes)
    stack[0], share[0], height, count = 0, budget_tokens, 1, 0
    while height:
        height -= 1
        node, budget = stack[height], share[height]
        below = first[node + 1] - first[node]
        if below == 0 or float(depth[node]) * below > budget:
            pieces[count] = node
            count += 1
            continue
        for place in range(first[node + 1] - 1, first[node] - 1, -1):
            stack[height], share[height] = children[place], budget / below
            height += 1
    return count
