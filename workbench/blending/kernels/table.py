"""A hash table from (node, symbol) to the child that begins with that symbol: open addressing, linear probing."""

import numpy as np

from workbench.jit import inner_kernel, kernel

EMPTY = -1


@kernel
def new_table(entries):
    """An empty table for at most so many entries: (nodes int32, symbols int64, children int32), half full at most."""
    size = 8
    while size < 2 * entries:
        size *= 2
    return np.full(size, EMPTY, np.int32), np.zeros(size, np.int64), np.zeros(size, np.int32)


@inner_kernel
def _place(nodes, symbols, node, symbol):
    """Where the pair is, or where it would be put."""
    mixed = (np.uint64(symbol) ^ (np.uint64(node) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
    mask = np.uint64(nodes.size - 1)
    place = (mixed ^ (mixed >> np.uint64(29))) & mask
    while nodes[place] != EMPTY and not (nodes[place] == node and symbols[place] == symbol):
        place = (place + np.uint64(1)) & mask
    return place


@inner_kernel
def get(nodes, symbols, children, node, symbol):
    """The child of a node that begins with a symbol, or -1."""
    place = _place(nodes, symbols, node, symbol)
    return np.int64(children[place]) if nodes[place] != EMPTY else np.int64(EMPTY)


@inner_kernel
def put(nodes, symbols, children, node, symbol, child):
    """Enter a child, in place of an earlier one with the same node and symbol."""
    place = _place(nodes, symbols, node, symbol)
    nodes[place], symbols[place], children[place] = node, symbol, child
