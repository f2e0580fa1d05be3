"""Which chains run through a placement, and how many jobs each may hold: shortest chain first (GCA, Algorithm 2)."""

import numpy as np

from workbench.jit import kernel


@kernel
def shortest_chain(first, blocks, most, enter_s, block_s, leave_s, extra_s, layers, server, share):
    """Find the quickest way through all blocks; a block is processed at the first server on the way that hosts it.

    Parameters:
        first, blocks: int64[J], first block of each server (from 0, -1 for none) and how many it hosts.
        most: int64[J], most blocks that a job may have processed on each (its free cache slots).
        enter_s, block_s, leave_s: float64[J], seconds for coming to a server, per block there, and from the last one.
        extra_s: float64[J, L + 1], seconds added on a server by the number of blocks processed there.
        layers: L.
        server, share: int64[W] to fill: the servers of the chain in order and the blocks that each processes; W is at
            least min(J, L).

    Returns:
        How many servers the chain has and its seconds; 0 and infinity where there is none.

    Dijkstra over the next block to be processed. A server is left at the end of its range, so the next block alone
    tells what can follow, and it only grows: blocks in order are states in the order in which Dijkstra settles them.
    Of equally quick ways the one found first is taken, over earlier blocks and then servers of lower number.
    """
    best_s = np.full(layers + 1, np.inf)
    best_s[0] = 0.0
    via = np.full(layers + 1, -1)
    back = np.full(layers + 1, -1)
    for block in range(layers):
        if best_s[block] == np.inf:
            continue
        for j in range(first.size):
            end = first[j] + blocks[j]
            work = end - block
            if first[j] < 0 or first[j] > block or work < 1 or work > most[j]:
                continue
            time_s = best_s[block] + (enter_s[j] + block_s[j] * work + extra_s[j, work])
            if end == layers:
                time_s += leave_s[j]
            if time_s < best_s[end]:
                best_s[end], via[end], back[end] = time_s, j, block
    if best_s[layers] == np.inf:
        return 0, np.inf
    length, block = 0, layers
    while block > 0:
        length += 1
        block = back[block]
    place, block = length, layers
    while block > 0:
        place -= 1
        server[place], share[place] = via[block], block - back[block]
        block = back[block]
    return length, best_s[layers]


@kernel
def gca(first, blocks, free, communication_s, compute_s, layers, server, share, length, capacity, time_s):
    """Take the quickest chain with as many jobs as its servers have slots for, again and again.

    Parameters:
        first, blocks, layers: as in `shortest_chain`.
        free: int64[J], cache slots of each server, one a job and block; on return those left over.
        communication_s, compute_s: float64[J], seconds of a job on a server, and per block processed there.
        server, share: int64[R, W] to fill: servers of each chain, -1 behind the last, and blocks processed on each.
        length, capacity: int64[R] to fill: servers of each chain, and jobs that it may hold.
        time_s: float64[R] to fill: seconds of a job on each chain.

    Returns:
        How many chains there are, in order of rising seconds. R = sum(blocks) + 1 rows are enough: each chain uses up
        the slots of a server for some number of blocks.
    """
    nothing = np.zeros(first.size)
    none = np.zeros((first.size, layers + 1))
    chains = 0
    while True:
        server[chains, :] = -1
        hops, seconds = shortest_chain(
            first, blocks, free, communication_s, compute_s, nothing, none, layers, server[chains], share[chains]
        )
        if hops == 0:
            return chains
        jobs = free[server[chains, 0]] // share[chains, 0]
        for hop in range(1, hops):
            jobs = min(jobs, free[server[chains, hop]] // share[chains, hop])
        for hop in range(hops):
            free[server[chains, hop]] -= share[chains, hop] * jobs
        length[chains], capacity[chains], time_s[chains] = hops, jobs, seconds
        chains += 1
