"""The router: one waiting line for each model, and whose turn it is."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.blocks import blocks_to_admit, take_blocks
from workbench.serving.kernels.layout import (
    BATCH,
    BEGIN,
    BEHIND,
    BOUNDARY,
    COMING,
    CURSOR,
    DECODES,
    DRAW,
    FIRST_TOKEN_S,
    FREE,
    GOING,
    INSTANCE,
    IS_UP,
    LANDED,
    LIMIT,
    MADE,
    NEED,
    NEXT,
    OUTPUT,
    OUTSTANDING,
    PROMPT,
    QUEUE_HEAD,
    QUEUED,
    RESTARTS,
    ROLE,
    ROOM,
    ROUTER_HEAD,
    ROUTER_TAIL,
    RUNNING,
    SEALED,
    SEGMENT_ROW,
    SENT_HEAD,
    SENT_TAIL,
    SLOTS,
    STORED,
    TOKENS,
    UP,
    VERSION,
    WAITING,
    WAITING_TOKENS,
    WEIGHTS,
)
from workbench.serving.kernels.lists import merged, queue_last
from workbench.serving.policy.dispatch import choose


@inner_kernel
def wait_at_router(state, router, m, r):
    """Put a request into its model's line, behind its equals."""
    line = router.lines[m]
    state.requests[r, NEXT] = -1
    line[ROUTER_HEAD], line[ROUTER_TAIL] = merged(state.requests, line[ROUTER_HEAD], line[ROUTER_TAIL], r, r)
    line[WAITING] += 1
    line[WAITING_TOKENS] += state.requests[r, NEED]


@inner_kernel
def candidates(state, router, m, r):
    """Fill the scratch arrays with the instances that can take a request now; how many there are.

    Those that would begin a batch without blocks for it are left out where there are others.
    """
    tokens = state.requests[r, PROMPT] + state.requests[r, OUTPUT]
    first, count, ready = router.lines[m, BEGIN], 0, False
    for place in range(router.lines[m, BEHIND] - first):
        one = state.instances[router.members[first + place]]
        takes = one[UP] > 0 and one[OUTSTANDING] < one[LIMIT] and tokens <= one[ROOM]
        if one[BATCH] > 0:
            takes = takes and joins_batch(state.requests, one, r)
        if takes and (has_room(state.requests, one, r) if one[ROLE] == DECODES else one[UP] == IS_UP):
            lacks = one[BATCH] > 0 and one[QUEUED] == 0 and blocks_to_admit(state.requests, one, r) > one[FREE]
            if lacks and ready:
                continue
            if not (lacks or ready):
                count, ready = 0, True
            router.offer[0, count] = place
            router.offer[1, count] = one[OUTSTANDING]
            router.offer[2, count] = one[TOKENS]
            count += 1
    return count


@inner_kernel
def joins_batch(requests, one, r):
    """Whether an instance that takes prompts when it is free is, and a request goes with what it took for its next
    step: alone always, with others while their tokens are no more than a batch has, and their blocks than are free."""
    if one[GOING] == 1 or one[RUNNING] > 0:
        return False
    if one[QUEUED] == 0:
        return True
    tokens, blocks, other = requests[r, NEED], blocks_to_admit(requests, one, r), one[QUEUE_HEAD]
    for _ in range(one[QUEUED]):
        tokens += requests[other, NEED]
        blocks += blocks_to_admit(requests, one, other)
        other = requests[other, NEXT]
    return one[SEALED] == 0 and tokens <= one[BATCH] and blocks <= one[FREE]


@inner_kernel
def has_room(requests, one, r):
    """Whether an instance that only decodes has the weights of a request, a slot and blocks for it, and nobody that it
    evicted."""
    inside = one[RUNNING] + one[COMING] + one[LANDED]
    right = requests[r, VERSION] == one[WEIGHTS] and one[QUEUED] == 0
    return right and inside < one[SLOTS] and blocks_to_admit(requests, one, r) <= one[FREE]


@inner_kernel
def give(state, j, r, now_s):
    """Give a request to an instance that has been brought up to now: it is queued there, or its KV is to be sent."""
    requests, one = state.requests, state.instances[j]
    requests[r, INSTANCE] = j
    if requests[r, VERSION] >= 0 and requests[r, VERSION] != one[WEIGHTS]:
        start_anew(state, r)
    one[OUTSTANDING] += 1
    one[TOKENS] += requests[r, NEED] - requests[r, STORED] + requests[r, OUTPUT] - requests[r, MADE]
    if one[ROLE] == DECODES:
        take_blocks(one, blocks_to_admit(requests, one, r))
        one[COMING] += 1
        send_last(requests, state.shared, r)
        return
    if one[QUEUED] == 0:
        one[SEALED] = 0
    queue_last(requests, one, r)
    wake(state, j, now_s)


@inner_kernel
def start_anew(state, r):
    """All that a request has made is void, since it goes on with other weights; see `logs.valid` for its segments."""
    requests = state.requests
    requests[r, RESTARTS] += 1
    requests[r, MADE], requests[r, NEED] = 0, requests[r, PROMPT]
    requests[r, VERSION] = requests[r, SEGMENT_ROW] = -1
    state.moments[r, FIRST_TOKEN_S] = np.nan


@inner_kernel
def send_last(requests, shared, r):
    """Put a request behind all whose KV is to be sent."""
    requests[r, NEXT] = -1
    if shared[SENT_HEAD] < 0:
        shared[SENT_HEAD] = r
    else:
        requests[shared[SENT_TAIL], NEXT] = r
    shared[SENT_TAIL] = r


@inner_kernel
def wake(state, j, now_s):
    """Let an idle instance look for work now."""
    if state.instances[j, GOING] == 0 and state.reals[j, BOUNDARY] > now_s:
        state.reals[j, BOUNDARY] = now_s


@inner_kernel
def hand_out(state, router, chooser, m, now_s):
    """Give requests from the head of a model's line to instances while there is one that can take the head.

    The instances have been brought up to now. False if the policy chose what was not offered.
    """
    line = router.lines[m]
    while line[ROUTER_HEAD] >= 0:
        r = line[ROUTER_HEAD]
        count = candidates(state, router, m, r)
        if count == 0:
            break
        places, outstanding, tokens = router.offer[0, :count], router.offer[1, :count], router.offer[2, :count]
        draw, turn = state.moments[r, DRAW:], line[CURSOR]
        if chooser is None:
            k = choose(router.route, places, outstanding, tokens, draw, turn)
        else:
            k = chooser(places, outstanding, tokens, draw, turn)
        if k < 0 or k >= count:
            return False
        j = router.members[line[BEGIN] + places[k]]
        line[CURSOR] = (places[k] + 1) % (line[BEHIND] - line[BEGIN])
        line[ROUTER_HEAD] = state.requests[r, NEXT]
        line[WAITING] -= 1
        line[WAITING_TOKENS] -= state.requests[r, NEED]
        give(state, j, r, now_s)
    return True


@inner_kernel
def next_release(state, router, m):
    """The first instant at which an instance that is full is done with somebody; infinity if none is."""
    soonest = np.inf
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        one = state.instances[j]
        if one[GOING] == 1 and one[OUTSTANDING] >= one[LIMIT]:
            soonest = min(soonest, state.reals[j, BOUNDARY])
    return soonest
