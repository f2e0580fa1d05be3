"""Instances that stop and come back."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.decoding import count_all_up
from workbench.serving.kernels.layout import (
    ASKING,
    BLOCKS,
    BOUNDARY,
    BROKEN,
    CHARGED,
    FAILED_STEPS,
    FREE,
    GOING,
    HEAD,
    LEFT_OUT,
    MADE,
    MOVES,
    NEED,
    NEXT,
    OUTSTANDING,
    PREFILL_HEAD,
    PREFILL_TAIL,
    PREFILLING,
    PROMPT,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUED,
    ROUTER_HEAD,
    ROUTER_TAIL,
    RUNNING,
    SINCE,
    STORED,
    TAIL,
    TOKENS,
    UP,
    WAITING,
    WAITING_TOKENS,
)
from workbench.serving.kernels.lists import merged
from workbench.serving.kernels.prefix_cache import empty_cache
from workbench.serving.kernels.segments import close_segment


@inner_kernel
def throw_out(state, j):
    """Stop an instance that has been brought up to now: its step is lost, and so is all KV, running or cached.

    The log has room for their segments. First and last of its requests by rank, the running ones before their equals;
    they are in no list of the instance any more.
    """
    requests, one = state.requests, state.instances[j]
    one[FAILED_STEPS] += one[GOING]
    count_all_up(state, one)
    r = one[HEAD]
    while r >= 0:
        close_segment(state, j, r)
        requests[r, STORED] = 0
        requests[r, SINCE] = -1
        requests[r, NEED] = requests[r, PROMPT] + requests[r, MADE]
        requests[r, MOVES] += 1
        r = requests[r, NEXT]
    first, last = merged(requests, one[HEAD], one[TAIL], one[QUEUE_HEAD], one[QUEUE_TAIL])
    one[GOING] = one[QUEUED] = one[RUNNING] = one[PREFILLING] = 0
    one[HEAD] = one[TAIL] = one[QUEUE_HEAD] = one[QUEUE_TAIL] = one[PREFILL_HEAD] = one[PREFILL_TAIL] = -1
    one[LEFT_OUT] = one[ASKING] = one[BROKEN] = one[CHARGED] = 0
    one[FREE] = one[BLOCKS]
    empty_cache(state.cells, one)
    state.reals[j, BOUNDARY] = np.inf
    return first, last


@inner_kernel
def fail(state, router, j, m):
    """Stop an instance that has been brought up to now; its requests wait at the router before their equals there."""
    requests, one, line = state.requests, state.instances[j], router.lines[m]
    r = one[QUEUE_HEAD]
    while r >= 0:
        requests[r, MOVES] += 1
        r = requests[r, NEXT]
    line[WAITING] += one[OUTSTANDING]
    first, last = throw_out(state, j)
    r = first
    while r >= 0:
        line[WAITING_TOKENS] += requests[r, NEED]
        r = requests[r, NEXT]
    line[ROUTER_HEAD], line[ROUTER_TAIL] = merged(requests, first, last, line[ROUTER_HEAD], line[ROUTER_TAIL])
    one[UP] = one[OUTSTANDING] = one[TOKENS] = 0
