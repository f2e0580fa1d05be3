"""Output lengths of requests that were not sampled: the mean of sampled ones that share most of their prefix."""

import numpy as np

from workbench.jit import kernel


@kernel
def subtree_estimates(parent, request, output, sampled, known, estimate, square):
    """Fill estimates of output tokens and of their squares.

    Parameters:
        parent, request: the tree, parents first.
        output: int64[n], true lengths. sampled: bool[n], whose length the warm-up has shown.
        known: bool[n], whose length is set beforehand; these count for nobody else.
        estimate, square: float64[n].

    A request takes the means over the sampled requests below the deepest node above it that has any; that is its own
    subtree, else the subtrees of its siblings, else those of its parent's siblings, and so on up.
    """
    nodes = parent.size
    count, total, squares = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    for node in range(nodes - 1, -1, -1):
        who = request[node]
        if who >= 0 and sampled[who] and not known[who]:
            count[node] += 1.0
            total[node] += output[who]
            squares[node] += float(output[who]) * output[who]
        if node:
            count[parent[node]] += count[node]
            total[parent[node]] += total[node]
            squares[parent[node]] += squares[node]
    nearest = np.zeros(nodes, np.int32)  # the deepest node at or above with a sample
    for node in range(nodes):
        if node:
            nearest[node] = node if count[node] > 0 else nearest[parent[node]]
        who = request[node]
        if who < 0:
            continue
        if sampled[who] or known[who]:
            estimate[who], square[who] = output[who], float(output[who]) * output[who]
        elif count[nearest[node]] > 0:
            estimate[who] = total[nearest[node]] / count[nearest[node]]
            square[who] = squares[nearest[node]] / count[nearest[node]]
        else:
            estimate[who], square[who] = np.nan, np.nan
