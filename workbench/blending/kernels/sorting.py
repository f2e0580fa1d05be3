"""Children sorted by density, layer by layer, and the leaves in the order in which a walk meets them."""

import numpy as np

from workbench.jit import kernel


@kernel
def children_of(parent, kept, first, children):
    """Fill every node's children in order of their numbers.

    Parameters:
        parent: int32[v]. kept: bool[v], nodes that take part.
        first: int64[v + 1], filled: the children of node i are children[first[i]:first[i + 1]].
        children: int32[v - 1], filled from the front.
    """
    nodes = parent.size
    first[:] = 0
    for node in range(1, nodes):
        if kept[node]:
            first[parent[node] + 1] += 1
    for node in range(nodes):
        first[node + 1] += first[node]
    filled = first[:-1].copy()
    for node in range(1, nodes):
        if kept[node]:
            above = parent[node]
            children[filled[above]] = node
            filled[above] += 1


@kernel
def layer_sort(first, children, density):
    """Sort the children of every node by falling density, in place; equal ones keep their order."""
    for node in range(first.size - 1):
        low, high = first[node], first[node + 1]
        if high - low > 1:
            own = children[low:high].copy()
            keys = np.empty(own.size)
            for place in range(own.size):
                keys[place] = -density[own[place]]
            ranks = np.argsort(keys, kind="mergesort")
            for place in range(own.size):
                children[low + place] = own[ranks[place]]


@kernel
def leaves_of(pieces, first, children, request, order):
    """Fill the requests below the pieces, piece by piece; returns how many."""
    stack = np.empty(children.size + 1, np.int32)
    met = 0
    for index in range(pieces.size):
        stack[0], height = pieces[index], 1
        while height:
            height -= 1
            node = stack[height]
            if request[node] >= 0:
                order[met] = request[node]
                met += 1
            for place in range(first[node + 1] - 1, first[node] - 1, -1):
                stack[height] = children[place]
                height += 1
    return met
