"""From one that prefills to one that decodes: the line in between, KV on its way, KV that has come."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.blocks import blocks_to_admit
from workbench.serving.kernels.flows import begin_flow, drop_flow, share_rates
from workbench.serving.kernels.layout import (
    BEGIN,
    BEHIND,
    COMING,
    FLOW,
    FREE,
    HELD,
    INSTANCE,
    LATEST,
    LEAVING_HEAD,
    LEFT_NOW,
    MADE,
    MOVES,
    NEED,
    NEXT,
    PREFILL,
    PROMPT,
    REQUEST_MODEL,
    RIGHT,
    ROUTER_HEAD,
    ROUTER_TAIL,
    SENT_HEAD,
    STAYING,
    STORED,
    UP,
    VERSION,
    WAITING,
    WAITING_TOKENS,
    WEIGHTS,
)
from workbench.serving.kernels.leaving import land_last, stop_leaving
from workbench.serving.kernels.lists import merged
from workbench.serving.kernels.roles_layout import END_S, NEXT_FLOW, REQUEST
from workbench.serving.kernels.routing import hand_out, wait_at_router, wake


@inner_kernel
def line_up(state, router, models):
    """Those who have left their instances wait to decode, instance after instance."""
    requests = state.requests
    for j in range(state.instances.shape[0]):
        one = state.instances[j]
        r = np.int64(-1) if one[STAYING] == 1 else one[LEFT_NOW]
        while r >= 0:
            wait_at_router(state, router, models + requests[r, REQUEST_MODEL], r)
            r = requests[r, RIGHT]
        one[LEFT_NOW] = -1


@inner_kernel
def send_what_stayed(state, router, j, waiting):
    """KV that stayed on an instance is to be sent: those whose it is wait to decode, behind their equals."""
    requests, one = state.requests, state.instances[j]
    if one[STAYING] == 0:
        return
    one[STAYING] = 0
    r = one[LEAVING_HEAD]
    while r >= 0:
        if requests[r, FLOW] < 0:
            wait_at_router(state, router, waiting, r)
        r = requests[r, RIGHT]


@inner_kernel
def hand_out_all(state, router, links, chooser, models, now_s):
    """Hand out all lines: first to those that prefill, then to those that decode. False for a wrong choice."""
    for m in range(models):
        if router.lines[m, ROUTER_HEAD] >= 0 and not hand_out(state, router, chooser, m, now_s):
            return False
    for m in range(models):
        if router.lines[m + models, ROUTER_HEAD] >= 0 and not hand_on(state, router, chooser, m, models, now_s):
            return False
    send(state, links, now_s)
    return True


@inner_kernel
def hand_out_model(state, router, links, chooser, m, models, now_s):
    """Hand out both lines of a model. False if the policy chose what was not offered."""
    right = hand_out(state, router, chooser, m, now_s) and hand_on(state, router, chooser, m, models, now_s)
    send(state, links, now_s)
    return right


@inner_kernel
def hand_on(state, router, chooser, m, models, now_s):
    """Hand out the line of those who wait to decode; whose KV is of no use any more waits for all to be computed anew.

    False if the policy chose what was not offered.
    """
    requests, waiting, first, last = state.requests, router.lines[m + models], np.int64(-1), np.int64(-1)
    while True:
        if not hand_out(state, router, chooser, m + models, now_s):
            return False
        r = waiting[ROUTER_HEAD]
        if r < 0 or not _is_stranded(state, router, m + models, r):
            break
        waiting[ROUTER_HEAD] = requests[r, NEXT]
        waiting[WAITING] -= 1
        waiting[WAITING_TOKENS] -= requests[r, NEED]
        _let_go(state, r, now_s)
        requests[r, MOVES] += 1
        requests[r, STORED], requests[r, NEED] = 0, requests[r, PROMPT] + requests[r, MADE]
        requests[r, NEXT] = -1
        first, last = merged(requests, first, last, r, r)
    if first < 0:
        return True
    line, r = router.lines[m], first
    while r >= 0:
        line[WAITING] += 1
        line[WAITING_TOKENS] += requests[r, NEED]
        r = requests[r, NEXT]
    line[ROUTER_HEAD], line[ROUTER_TAIL] = merged(requests, first, last, line[ROUTER_HEAD], line[ROUTER_TAIL])
    return hand_out(state, router, chooser, m, now_s)


@inner_kernel
def _is_stranded(state, router, waiting, r):
    """Whether the KV of a request is of an older version that nobody decodes any more."""
    version, line = state.requests[r, VERSION], router.lines[waiting]
    if version == line[LATEST]:
        return False
    for k in range(line[BEGIN], line[BEHIND]):
        one = state.instances[router.members[k]]
        if one[UP] > 0 and one[WEIGHTS] == version:
            return False
    return True


@inner_kernel
def _let_go(state, r, now_s):
    """The KV of a request that has left its instance is not needed there any more."""
    j = np.int64(state.requests[r, PREFILL])
    one = state.instances[j]
    one[FREE] += state.requests[r, HELD]
    stop_leaving(state.requests, one, r)
    wake(state, j, now_s)


@inner_kernel
def hand_out_and_on(state, router, links, chooser, line, now_s):
    """Hand out a model's line; with roles both lines of the model whose line it is. False for a wrong choice."""
    if links is None:
        return hand_out(state, router, chooser, line, now_s)
    models = router.lines.shape[0] // 2
    return hand_out_model(state, router, links, chooser, line % models, models, now_s)


@inner_kernel
def send(state, links, now_s):
    """Let the KV of all who have just been given to one that decodes be on its way."""
    requests, r = state.requests, state.shared[SENT_HEAD]
    if r < 0:
        return
    while r >= 0:
        size = float(requests[r, STORED]) * links.kv_bytes[requests[r, REQUEST_MODEL]]
        requests[r, FLOW] = begin_flow(
            links, r, np.int64(requests[r, PREFILL]), np.int64(requests[r, INSTANCE]), size, now_s
        )
        r = requests[r, NEXT]
    state.shared[SENT_HEAD] = -1
    share_rates(links)


@inner_kernel
def land(state, links, now_s):
    """The flow that is due has come: its blocks at the source are free, and the target may run its request."""
    requests, entry = state.requests, links.counts[NEXT_FLOW]
    flow = links.flows[entry]
    r = int(flow[REQUEST])
    drop_flow(links, entry, now_s)
    flow[END_S] = now_s
    requests[r, FLOW] = -1
    _let_go(state, r, now_s)
    target = state.instances[requests[r, INSTANCE]]
    target[COMING] -= 1
    requests[r, HELD] = blocks_to_admit(requests, target, r)
    land_last(requests, target, r)
    wake(state, np.int64(requests[r, INSTANCE]), now_s)
    share_rates(links)
