"""Requests that leave an instance that only prefills, and those that join one that only decodes, with their KV."""

from workbench.jit import inner_kernel
from workbench.serving.kernels.layout import (
    ASKING,
    BLOCK,
    BROKEN,
    FLOW,
    LANDED,
    LANDED_HEAD,
    LANDED_TAIL,
    LEAVING_HEAD,
    LEAVING_TAIL,
    LEFT,
    LEFT_NOW,
    MADE,
    NEXT,
    OUTPUT,
    OUTSTANDING,
    RESERVE,
    RIGHT,
    STAYING,
    STORED,
    TOKENS,
)
from workbench.serving.kernels.lists import run_last, stop_running
from workbench.serving.kernels.segments import close_segment


@inner_kernel
def leave(state, j, one, r):
    """A running request whose prompt is stored runs here no longer; its blocks stay until its KV has been sent."""
    requests = state.requests
    close_segment(state, j, r)
    stop_running(requests, one, r)
    one[OUTSTANDING] -= 1
    one[TOKENS] -= requests[r, OUTPUT] - requests[r, MADE]
    last = one[LEAVING_TAIL]
    requests[r, LEFT], requests[r, RIGHT] = last, -1
    if last < 0:
        one[LEAVING_HEAD] = r
    else:
        requests[last, RIGHT] = r
    one[LEAVING_TAIL] = r
    if one[LEFT_NOW] < 0:
        one[LEFT_NOW] = r


@inner_kernel
def is_idle(one):
    """Whether an instance has no request, and no KV that is still to be sent."""
    return one[OUTSTANDING] == 0 and one[LEAVING_HEAD] < 0


@inner_kernel
def is_done(state, j):
    """Whether nothing that is on an instance goes on there: KV that stays does not."""
    one = state.instances[j]
    if one[OUTSTANDING] > 0 or (one[LEAVING_HEAD] >= 0 and one[STAYING] == 0):
        return False
    r = one[LEAVING_HEAD]
    while r >= 0:
        if state.requests[r, FLOW] >= 0:
            return False
        r = state.requests[r, RIGHT]
    return True


@inner_kernel
def stop_leaving(requests, one, r):
    """Take a request out of the leaving ones."""
    before, after = requests[r, LEFT], requests[r, RIGHT]
    if before < 0:
        one[LEAVING_HEAD] = after
    else:
        requests[before, RIGHT] = after
    if after < 0:
        one[LEAVING_TAIL] = before
    else:
        requests[after, LEFT] = before


@inner_kernel
def land_last(requests, one, r):
    """Put a request behind all whose KV has come."""
    requests[r, NEXT] = -1
    if one[LANDED] == 0:
        one[LANDED_HEAD] = r
    else:
        requests[one[LANDED_TAIL], NEXT] = r
    one[LANDED_TAIL] = r
    one[LANDED] += 1


@inner_kernel
def join_landed(state, one):
    """Let those whose KV has come run, as if their prompts had just been stored; see `grow` for their blocks."""
    requests, r = state.requests, one[LANDED_HEAD]
    for _ in range(one[LANDED]):
        after = requests[r, NEXT]
        run_last(requests, one, r)
        if one[RESERVE] == 0 and requests[r, STORED] % one[BLOCK] == 0:
            one[ASKING] += 1
        r = after
    one[LANDED] = 0
    one[BROKEN] = 1  # they have no open segment
