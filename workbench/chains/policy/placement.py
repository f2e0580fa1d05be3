"""Which blocks each server hosts: greedy, with room kept for cache (GBP-CR, Algorithm 1), and in any order."""

import numpy as np

from workbench.jit import kernel


@kernel
def blocks_that_fit(memory_bytes, layers, block_bytes, cache_bytes, reserved, blocks):
    """Fill int64[J] with how many blocks each server hosts when room for `reserved` jobs is kept on each block.

    m(c) = min(floor(M / (s_m + s_c c)), L). All bytes are whole numbers: a rounded quotient would lose a block.
    """
    for server in range(memory_bytes.size):
        blocks[server] = min(memory_bytes[server] // (block_bytes + cache_bytes * reserved), layers)


@kernel
def gbp_cr(blocks, communication_s, compute_s, layers, needed_per_s, first, chain):
    """Group servers into disjoint chains, fastest per block first, until the chains serve enough.

    Parameters:
        blocks: int64[J], blocks that each server can host, 0 to leave it out.
        communication_s, compute_s: float64[J], seconds of a job on a server, and per block there.
        layers: L, blocks of the model.
        needed_per_s: rate at which chains, one job at a time each, must complete jobs: λ/(ρ c). Placing stops once it
            is met; infinity places every server.
        first: int64[J] to fill: first block of each server, counted from 0; -1 where it hosts none.
        chain: int64[J] to fill: the chain of each server; -1 where it is in none. Servers placed behind the last
            complete chain are in none and keep their blocks.

    Returns:
        How many chains there are, and their rate.

    The last server of a chain is shifted back so that it keeps all its blocks. Equal servers stay in their order.
    """
    first[:] = -1
    chain[:] = -1
    hosting = np.flatnonzero(blocks > 0)
    if blocks.sum() < layers:
        return 0, 0.0
    amortised_s = (communication_s[hosting] + compute_s[hosting] * blocks[hosting]) / blocks[hosting]
    order = hosting[np.argsort(amortised_s, kind="mergesort")]
    chains, rate_per_s = 0, 0.0
    begin, reached, time_s = 0, 0, 0.0
    for place in range(order.size):
        server = order[place]
        first[server] = min(reached, layers - blocks[server])
        time_s += communication_s[server] + compute_s[server] * blocks[server]
        reached = min(reached + blocks[server], layers)
        if reached == layers:
            for member in range(begin, place + 1):
                chain[order[member]] = chains
            chains += 1
            rate_per_s += 1.0 / time_s
            if rate_per_s >= needed_per_s:
                break
            begin, reached, time_s = place + 1, 0, 0.0
    return chains, rate_per_s


@kernel
def grouped_in_order(order, blocks, communication_s, compute_s, layers, needed_per_s):
    """How many chains of servers taken in a given order are needed to serve `needed_per_s`; 0 where all are too few."""
    chains, rate_per_s, reached, time_s = 0, 0.0, 0, 0.0
    for place in range(order.size):
        server = order[place]
        if blocks[server] == 0:
            continue
        reached += blocks[server]
        time_s += communication_s[server] + compute_s[server] * blocks[server]
        if reached >= layers:
            chains += 1
            rate_per_s += 1.0 / time_s
            if rate_per_s >= needed_per_s:
                return chains
            reached, time_s = 0, 0.0
    return 0
