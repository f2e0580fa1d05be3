"""Which shared segments are in the KV pool: referenced by requests in flight, or idle and next to go."""

from typing import NamedTuple

import numpy as np

from workbench.jit import inner_kernel, kernel

SHARED, IDLE, OLDEST, NEWEST = range(4)
"""Places of the totals: tokens of all segments in the pool, of idle ones; ends of the list of idle nodes."""


class Pool(NamedTuple):
    """Of each node: requests in flight that use it, whether its segment is there, neighbours in the idle list."""

    users: np.ndarray
    there: np.ndarray
    older: np.ndarray
    newer: np.ndarray
    total: np.ndarray


@kernel
def new_pool(nodes):
    """An empty pool for a tree of so many nodes."""
    total = np.zeros(4, np.int64)
    total[OLDEST] = total[NEWEST] = -1
    links = np.full((2, nodes), -1, np.int32)
    return Pool(np.zeros(nodes, np.int32), np.zeros(nodes, np.bool_), links[0], links[1], total)


@inner_kernel
def missing_tokens(parent, tokens, pool, node):
    """Shared tokens between the root and a node that are not in the pool."""
    count = 0
    while node > 0 and not pool.there[node]:
        count += tokens[node]
        node = parent[node]
    return count


@inner_kernel
def unused_tokens(parent, tokens, pool, node):
    """Shared tokens between the root and a node that nobody in flight holds, whether they are in the pool or not."""
    count = 0
    while node > 0 and pool.users[node] == 0:
        count += tokens[node]
        node = parent[node]
    return count


@inner_kernel
def _unlink(pool, node):
    older, newer = pool.older[node], pool.newer[node]
    if older >= 0:
        pool.newer[older] = newer
    else:
        pool.total[OLDEST] = newer
    if newer >= 0:
        pool.older[newer] = older
    else:
        pool.total[NEWEST] = older


@inner_kernel
def use(parent, tokens, pool, node):
    """Reference every segment from a node up to the root; those that were missing are then there."""
    while node > 0:
        if not pool.there[node]:
            pool.there[node] = True
            pool.total[SHARED] += tokens[node]
        elif pool.users[node] == 0:
            _unlink(pool, node)
            pool.total[IDLE] -= tokens[node]
        pool.users[node] += 1
        node = parent[node]


@inner_kernel
def leave(parent, tokens, pool, node):
    """Take back one reference from a node up to the root; what nobody uses becomes idle, the deepest first."""
    while node > 0:
        pool.users[node] -= 1
        if pool.users[node] == 0:
            newest = pool.total[NEWEST]
            pool.older[node], pool.newer[node] = newest, -1
            if newest >= 0:
                pool.newer[newest] = node
            else:
                pool.total[OLDEST] = node
            pool.total[NEWEST] = node
            pool.total[IDLE] += tokens[node]
        node = parent[node]


@inner_kernel
def drop_oldest(tokens, pool):
    """Drop the segment that has been idle longest."""
    node = pool.total[OLDEST]
    _unlink(pool, node)
    pool.there[node] = False
    pool.total[IDLE] -= tokens[node]
    pool.total[SHARED] -= tokens[node]
