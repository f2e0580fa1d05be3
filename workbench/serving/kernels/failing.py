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
from workbench.serving.kernels.segments import close_segment


@inner_kernel
def fail(state, router, j, m):
    """Stop an instance that has been brought up to now: its step is lost, and its requests go back to the router.

    They stand before those that wait there, the running ones first. The log has room for their segments.
    """
    requests, one, line = state.requests, state.instances[j], router.lines[m]
    one[FAILED_STEPS] += one[GOING]
    count_all_up(state, one)
    if one[RUNNING] > 0:
        requests[one[TAIL], NEXT] = one[QUEUE_HEAD] if one[QUEUED] > 0 else -1
        first, last = one[HEAD], one[QUEUE_TAIL] if one[QUEUED] > 0 else one[TAIL]
    elif one[QUEUED] > 0:
        first, last = one[QUEUE_HEAD], one[QUEUE_TAIL]
    else:
        first, last = np.int64(-1), np.int64(-1)
    r = first
    while r >= 0:
        close_segment(state, j, r)
        requests[r, STORED] = 0
        requests[r, SINCE] = -1
        requests[r, NEED] = requests[r, PROMPT] + requests[r, MADE]
        state.requests[r, MOVES] += 1
        line[WAITING] += 1
        line[WAITING_TOKENS] += requests[r, NEED]
        r = requests[r, NEXT]
    if first >= 0:
        if line[ROUTER_HEAD] < 0:
            line[ROUTER_TAIL] = last
        requests[last, NEXT] = line[ROUTER_HEAD]
        line[ROUTER_HEAD] = first
    one[UP] = one[GOING] = one[QUEUED] = one[RUNNING] = one[PREFILLING] = one[OUTSTANDING] = one[TOKENS] = 0
    one[HEAD] = -1
    one[LEFT_OUT] = one[ASKING] = one[BROKEN] = one[CHARGED] = 0
    one[FREE] = one[BLOCKS]
    state.reals[j, BOUNDARY] = np.inf
