"""The prefix cache of an instance: ids of hash blocks, of which the one used longest ago goes first.

It lies in `State.cells`: first a table of 2^b places, each the node at which the chain of all ids with the same last b
bits begins; then the nodes, of four numbers each. A node stands in its chain and in the line of last use.
"""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.layout import (
    CACHE,
    CACHE_AT,
    CACHE_MASK,
    CACHED_IDS,
    ID_TOKENS,
    IDS,
    IDS_AT,
    NEED,
    NEWEST,
    OLDEST,
)

ID, CHAIN, NEWER, OLDER = 0, 1, 2, 3
"""Of a node: its id, the next one of its chain, its neighbours by last use; -1 for none."""
NODE_SIZE = 4


def cache_sizes(most: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the table of each instance, and cells of its whole cache: none where there are no ids.

    Parameters:
        most: int64[N], ids that each holds; of no use beyond the number of different ones.
        ids: int64[t], numbered from 0.
    """
    nodes = np.minimum(most, 1 + ids.max(initial=-1))
    table = np.array([1 << (count - 1).bit_length() if count > 0 else 0 for count in nodes.tolist()], np.int64)
    return table, table + NODE_SIZE * nodes


@inner_kernel
def node_of(cells, one, block):
    """The node of an id, -1 where the cache does not hold it."""
    node = np.int64(cells[one[CACHE_AT] + (block & one[CACHE_MASK])])
    while node >= 0 and cells[node + ID] != block:
        node = np.int64(cells[node + CHAIN])
    return node


@inner_kernel
def _unlink(cells, one, node):
    newer, older = cells[node + NEWER], cells[node + OLDER]
    if newer < 0:
        one[NEWEST] = older
    else:
        cells[newer + OLDER] = older
    if older < 0:
        one[OLDEST] = newer
    else:
        cells[older + NEWER] = newer


@inner_kernel
def _link_newest(cells, one, node):
    newest = one[NEWEST]
    cells[node + NEWER], cells[node + OLDER] = -1, newest
    if newest < 0:
        one[OLDEST] = node
    else:
        cells[newest + NEWER] = node
    one[NEWEST] = node


@inner_kernel
def _free_node(cells, one):
    """A node in no chain and no line: a new one, or that of the id used longest ago."""
    if one[CACHED_IDS] < one[CACHE]:
        one[CACHED_IDS] += 1
        return one[CACHE_AT] + one[CACHE_MASK] + 1 + NODE_SIZE * (one[CACHED_IDS] - 1)
    node = one[OLDEST]
    _unlink(cells, one, node)
    before = one[CACHE_AT] + (cells[node + ID] & one[CACHE_MASK])
    while cells[before] != node:
        before = cells[before] + CHAIN
    cells[before] = cells[node + CHAIN]
    return node


@inner_kernel
def tokens_found(state, one, r):
    """Prompt tokens of a request that the cache has; the first of their ids is then the one used last."""
    cells, first, count = state.cells, state.requests[r, IDS_AT], state.requests[r, IDS]
    found = 0
    while found < count and node_of(cells, one, cells[first + found]) >= 0:
        found += 1
    for k in range(found - 1, -1, -1):
        node = node_of(cells, one, cells[first + k])
        _unlink(cells, one, node)
        _link_newest(cells, one, node)
    return min(found * state.shared[ID_TOKENS], state.requests[r, NEED] - 1)


@inner_kernel
def keep_prefix(state, one, r):
    """The prompt of a request is stored: the cache holds its leading ids, the first of them as the one used last."""
    cells, first = state.cells, state.requests[r, IDS_AT]
    for k in range(min(state.requests[r, IDS], one[CACHE]) - 1, -1, -1):
        block = cells[first + k]
        node = node_of(cells, one, block)
        if node >= 0:
            _unlink(cells, one, node)
        else:
            node = _free_node(cells, one)
            head = one[CACHE_AT] + (block & one[CACHE_MASK])
            cells[node + ID], cells[node + CHAIN] = block, cells[head]
            cells[head] = node
        _link_newest(cells, one, node)


@inner_kernel
def empty_cache(cells, one):
    """The cache holds nothing any more."""
    for k in range(one[CACHED_IDS]):
        node = one[CACHE_AT] + one[CACHE_MASK] + 1 + NODE_SIZE * k
        cells[one[CACHE_AT] + (cells[node + ID] & one[CACHE_MASK])] = -1
    one[CACHED_IDS] = 0
    one[NEWEST] = one[OLDEST] = -1
