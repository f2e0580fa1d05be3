"""A request's KV at a new node: computed again from its tokens, or moved from those that hold it."""

import numpy as np

from workbench.jit import kernel


@kernel
def recompute_seconds(tokens, token_s, least_s, out_s):
    """Fill seconds of one prefill over so many tokens: `token_s` for each, but `least_s` (reading all weights)."""
    for k in range(tokens.size):
        out_s[k] = max(least_s, token_s * tokens[k])


@kernel
def move_seconds(tokens, kv_bytes, nodes, bytes_per_s, alpha_s, out_s):
    """Fill seconds until the KV of so many tokens has come from the other `nodes` - 1 of a pipeline.

    Each holds its share of the layers; all of them send through the one link of the receiver, one message each.
    """
    others = nodes - 1
    for k in range(tokens.size):
        out_s[k] = others * alpha_s + tokens[k] * kv_bytes * others / nodes / bytes_per_s


@kernel
def crossovers(token_s, least_s, move_token_s, move_fixed_s):
    """Between which numbers of tokens recomputing is faster than moving: (low, high), none where low >= high.

    Recomputing takes max(least_s, token_s n), moving move_fixed_s + move_token_s n.
    """
    low = 0.0
    if least_s > move_fixed_s:
        low = (least_s - move_fixed_s) / move_token_s if move_token_s > 0.0 else np.inf
    high = move_fixed_s / (token_s - move_token_s) if token_s > move_token_s else np.inf
    return low, high


def faster_to_recompute_slow(tokens, token_s, least_s, move_token_s, move_fixed_s):
    """Twin of `crossovers`: at each of many numbers of tokens, whether recomputing is faster."""
    return np.maximum(least_s, token_s * tokens) < move_fixed_s + move_token_s * tokens
