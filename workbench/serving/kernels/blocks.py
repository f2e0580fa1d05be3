"""KV blocks at a step start: those that decode take the blocks they need, and the last ones give way."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.decoding import begin_all, count_all_up
from workbench.serving.kernels.layout import (
    ASKING,
    BLOCK,
    BLOCKS,
    CHARGED,
    EVICTIONS,
    FREE,
    HEAD,
    HELD,
    MADE,
    NEED,
    NEXT,
    OUTPUT,
    PEAK,
    PROMPT,
    RESERVE,
    STORED,
    TAIL,
    TOKENS,
)
from workbench.serving.kernels.lists import queue_first, stop_last_prefill, stop_running
from workbench.serving.kernels.segments import close_segment


@inner_kernel
def blocks_to_admit(requests, one, r):
    """KV blocks that a request takes when it is admitted, or when its KV is sent."""
    tokens = requests[r, NEED] if one[RESERVE] == 0 else requests[r, PROMPT] + requests[r, OUTPUT]
    return (tokens + one[BLOCK] - 1) // one[BLOCK]


@inner_kernel
def take_blocks(one, count):
    """Take free blocks."""
    one[FREE] -= count
    one[PEAK] = max(one[PEAK], one[BLOCKS] - one[FREE])


@inner_kernel
def evict_last(state, j, one):
    """Send the last running request back to the queue, before its equals there and without its KV; which one it was.

    None counts by itself now, see `count_all_up`.
    """
    requests, r = state.requests, one[TAIL]
    one[FREE] += requests[r, HELD]
    close_segment(state, j, r)
    stored, need = requests[r, STORED], requests[r, NEED]
    if stored < need:
        stop_last_prefill(requests, one)
        one[TOKENS] -= need - stored
    stop_running(requests, one, r)
    requests[r, STORED] = 0
    requests[r, NEED] = requests[r, PROMPT] + requests[r, MADE]
    one[TOKENS] += requests[r, NEED]
    requests[r, EVICTIONS] += 1
    queue_first(requests, one, r)
    return r


@inner_kernel
def grow(state, j, one, joined):
    """Give every request that decodes the block of its next token; True unless somebody had to go for that.

    Of those that decode, so many have joined that do not count by themselves yet.
    """
    calm = True
    if one[RESERVE] == 0:
        if one[ASKING] <= one[FREE]:
            take_blocks(one, one[ASKING])
            one[ASKING] = 0
        else:
            _grow_one_by_one(state, j, one)
            calm = False
    if joined > 0 and calm:
        begin_all(state, one)
    one[CHARGED] = 1
    return calm


@inner_kernel
def _grow_one_by_one(state, j, one):
    requests, block = state.requests, one[BLOCK]
    count_all_up(state, one)
    r = one[HEAD]
    while r >= 0:
        if requests[r, STORED] >= requests[r, NEED] and requests[r, HELD] * block == requests[r, STORED]:
            gone = False
            while one[FREE] == 0 and not gone:
                gone = evict_last(state, j, one) == r
            if gone:
                break  # it was the last one
            take_blocks(one, np.int64(1))
            requests[r, HELD] += 1
        r = requests[r, NEXT]
    begin_all(state, one)
