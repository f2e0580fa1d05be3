"""Sums over the requests below every node: requests, compute, KV reads, and what sharing saves."""

from workbench.jit import kernel

REQUESTS, COMPUTE, READ, SAVED, PROMPT, OUTPUT = range(6)
"""Columns of the sums: requests; their compute and KV reads in tokens; compute saved by sharing below the node; prompt
and output tokens."""


@kernel
def work_of(tokens, attention):
    """Compute of a prompt's first tokens, in tokens: themselves, and attention among them where it is counted."""
    return tokens + attention * tokens * tokens


@kernel
def subtree_sums(parent, depth, request, prompt, output, square, attention, sums):
    """Fill the sums of every node.

    Parameters:
        parent: int32[v], nodes numbered in preorder, or any order in which parents come first.
        depth: int64[v], tokens from the root to the node's end. request: int32[v], -1 for inner nodes.
        prompt: int64[n], output, square: float64[n], output tokens and their squares, estimated.
        attention: compute of attention over a pair of prompt tokens, over that of a token.
        sums: float64[v, 6].

    A request computes prompt and output tokens and reads p d + d^2 / 2 KV tokens. A node above m requests saves (m - 1)
    times the compute of its own segment.
    """
    sums[:] = 0.0
    for node in range(parent.size - 1, -1, -1):
        who = request[node]
        row = sums[node]
        if who >= 0:
            row[REQUESTS] = 1.0
            row[COMPUTE] = work_of(float(prompt[who]), attention) + output[who]
            row[READ] = prompt[who] * output[who] + 0.5 * square[who]
            row[PROMPT], row[OUTPUT] = prompt[who], output[who]
        above = parent[node]
        if above >= 0:
            if row[REQUESTS] > 1.0:
                own = work_of(float(depth[node]), attention) - work_of(float(depth[above]), attention)
                row[SAVED] += (row[REQUESTS] - 1.0) * own
            for column in range(row.size):
                sums[above, column] += row[column]


@kernel
def computed_of(parent, depth, sums, attention, computed):
    """Fill what the requests below each node compute if they run alone, one after the other down the tree, in tokens.

    What all of them inherit from above the node is computed once too.
    """
    for node in range(parent.size):
        inherited = work_of(float(depth[parent[node]]), attention) if node else 0.0
        again = max(sums[node, REQUESTS] - 1.0, 0.0)
        computed[node] = sums[node, COMPUTE] - sums[node, SAVED] - again * inherited
