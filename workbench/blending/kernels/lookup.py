"""What a prompt shares with the tree: a walk from the root over the children's first symbols."""

from workbench.blending.kernels.table import EMPTY, get, new_table, put
from workbench.jit import kernel


@kernel
def index_tree(symbols, parent, begin, length):
    """A table from (node, first symbol) to the child, for every node that has a segment.

    Parameters:
        symbols: int64[s], of all prompts. parent: int32[v].
        begin, length: int64[v], where a node's segment begins among the symbols, and how many it has.
    """
    nodes, keys, children = new_table(parent.size)
    for node in range(1, parent.size):
        if length[node] > 0:
            put(nodes, keys, children, parent[node], symbols[begin[node]], node)
    return nodes, keys, children


@kernel
def longest_match(symbols, first, end, begin, length, nodes, keys, children):
    """The deepest node whose whole path begins the prompt symbols[first:end].

    Parameters:
        begin, length: int64[v], the symbols of each node's segment.
        nodes, keys, children: as `index_tree` gives them.
    """
    node, at = 0, first
    while at < end:
        child = get(nodes, keys, children, node, symbols[at])
        if child == EMPTY or at + length[child] > end:
            return node
        for place in range(1, length[child]):
            if symbols[begin[child] + place] != symbols[at + place]:
                return node
        at += length[child]
        node = child
    return node
