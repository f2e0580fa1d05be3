"""A radix tree over sequences of symbols: requests that begin alike share the nodes of what they have in common."""

import numpy as np

from workbench.blending.kernels.table import EMPTY, get, new_table, put
from workbench.jit import kernel


@kernel
def grow_tree(symbols, start, parent, begin, length, request):
    """Insert sequences one by one; fill the nodes in order of their making and return how many there are.

    Parameters:
        symbols: int64[s], all sequences one after the other.
        start: int64[n + 1], where each begins.
        parent: int32[2 n + 1], the node above, -1 for the root, which is node 0.
        begin, length: int64[2 n + 1], the symbols of the node's own segment.
        request: int32[2 n + 1], the sequence that ends at a leaf, -1 for inner nodes.

    Every sequence has a leaf of its own: where one ends inside another, or equals it, the leaf's segment is empty.
    """
    requests = start.size - 1
    nodes, keys, children = new_table(2 * requests + 1)
    parent[0], begin[0], length[0], request[0] = -1, 0, 0, -1
    count = 1
    for index in range(requests):
        node, at, end = 0, start[index], start[index + 1]
        while True:
            child = get(nodes, keys, children, node, symbols[at]) if at < end else EMPTY
            if child == EMPTY:  # the rest is its own
                parent[count], begin[count], length[count], request[count] = node, at, end - at, index
                if at < end:
                    put(nodes, keys, children, node, symbols[at], count)
                count += 1
                break
            same, size, base = 1, length[child], begin[child]
            while same < size and at + same < end and symbols[base + same] == symbols[at + same]:
                same += 1
            at += same
            if same < size:  # they part inside the child: a new node takes what is common
                upper = count
                parent[upper], begin[upper], length[upper], request[upper] = node, base, same, -1
                put(nodes, keys, children, node, symbols[base], upper)
                parent[child], begin[child], length[child] = upper, base + same, size - same
                put(nodes, keys, children, upper, symbols[base + same], child)
                count += 1
                child = upper
            elif request[child] >= 0:  # an earlier sequence ends here: it gets an empty leaf below
                parent[count], begin[count], length[count], request[count] = child, at, 0, request[child]
                request[child] = -1
                count += 1
            node = child
    return count


@kernel
def preorder(parent, request, count, sequences, number, last):
    """Number the nodes so that each stands before all below it and siblings stand by their first sequence.

    Parameters:
        parent, request: as `grow_tree` fills them. count: nodes. sequences: how many were inserted.
        number: int32[count], filled with the new number of each node.
        last: int32[count], filled, by new number, with one past the last node below.
    """
    # A node was first reached by the smallest sequence below it.
    first = np.full(count, sequences, np.int32)
    order = np.empty(count, np.int32)  # every node behind the node above it
    depth = np.zeros(count, np.int32)
    for node in range(count):
        above, steps = node, 0
        while above > 0 and depth[above] == 0:
            steps += 1
            above = parent[above]
        below = depth[above] + steps
        above = node
        while above > 0 and depth[above] == 0:
            depth[above] = below
            below -= 1
            above = parent[above]
    filled = np.zeros(depth.max() + 2, np.int64)
    for node in range(count):
        filled[depth[node] + 1] += 1
    for level in range(1, filled.size):
        filled[level] += filled[level - 1]
    for node in range(count):
        order[filled[depth[node]]] = node
        filled[depth[node]] += 1
    size = np.ones(count, np.int32)
    for place in range(count - 1, 0, -1):
        node = order[place]
        if request[node] >= 0:
            first[node] = request[node]
        above = parent[node]
        first[above] = min(first[above], first[node])
        size[above] += size[node]
    # Children in order of their first sequence: bucket all nodes by it, append each to its parent's list.
    head, tail, follow = np.full(count, -1, np.int32), np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    bucket, more = np.full(sequences + 1, -1, np.int32), np.full(count, -1, np.int32)
    for node in range(count - 1, 0, -1):
        more[node] = bucket[first[node]]
        bucket[first[node]] = node
    for sequence in range(sequences):
        node = bucket[sequence]
        while node >= 0:
            above = parent[node]
            if head[above] < 0:
                head[above] = node
            else:
                follow[tail[above]] = node
            tail[above] = node
            node = more[node]
    number[0], last[0] = 0, count
    for place in range(count):
        node = order[place]
        following = number[node] + 1
        child = head[node]
        while child >= 0:
            number[child] = following
            following += size[child]
            last[number[child]] = following
            child = follow[child]


@kernel
def renumbered(number, parent, begin, length, request, symbol_tokens, out_parent, tokens, depth, out_request):
    """Fill the tree's arrays by new number: parent, tokens of the own segment, tokens from the root to its end, whose.

    Parameters:
        number: of each node, as `preorder` fills it.
        parent, begin, length, request: as `grow_tree` fills them.
        symbol_tokens: int64[s + 1], tokens in front of each symbol, over all sequences.
        out_parent: int32, tokens, depth: int64, out_request: int32; one for each node.
    """
    for node in range(number.size):
        place = number[node]
        out_parent[place] = number[parent[node]] if node else -1
        tokens[place] = symbol_tokens[begin[node] + length[node]] - symbol_tokens[begin[node]]
        out_request[place] = request[node]
    depth[0] = 0
    for place in range(1, number.size):
        depth[place] = depth[out_parent[place]] + tokens[place]
