"""BPRR, the chain paper's predecessor (arXiv 2512.21884): conservative greedy block placement (CG-BP)."""

import numpy as np

from workbench.jit import kernel


@kernel
def cg_bp(blocks, token_s, sessions, layers, concurrency, first):
    """Fill int64[J] with the first block (from 0) of each server, so that each block can hold `concurrency` sessions.

    Parameters:
        blocks: int64[J], blocks that each server hosts.
        token_s: float64[J], seconds per block and token there, communication included.
        sessions: int64[J], sessions that each server can hold.
        concurrency: R, sessions to be held everywhere.

    Servers come in order of their time per block. Each goes to the window with an under-served block whose blocks are
    worst off in amortised time; once none is under-served, to the window of least capacity (in order of sorted
    capacities).
    """
    first[:] = -1
    hosting = np.flatnonzero(blocks > 0)
    if hosting.size == 0:
        return
    slowest_s = token_s[hosting].max() + 1.0
    capacity = np.zeros(layers, np.int64)
    burden_s = np.full(layers, concurrency * slowest_s)
    for server in hosting[np.argsort(token_s[hosting], kind="mergesort")]:
        width = blocks[server]
        short = (capacity < concurrency).any()
        best = -1
        for begin in range(layers - width + 1):
            held = capacity[begin : begin + width]
            if short:
                if (held < concurrency).any() and (
                    best < 0 or burden_s[begin : begin + width].sum() > burden_s[best : best + width].sum()
                ):
                    best = begin
            elif best < 0 or _below(held, capacity[best : best + width]):
                best = begin
        first[server] = best
        for block in range(best, best + width):
            relieved = min(max(concurrency - capacity[block], 0), sessions[server])
            burden_s[block] -= (slowest_s - token_s[server]) * relieved
            capacity[block] += sessions[server]


@kernel
def _below(one, other):
    a, b = np.sort(one), np.sort(other)
    for place in range(a.size):
        if a[place] != b[place]:
            return a[place] < b[place]
    return False
