"""Failures of instances that have roles of their own: KV that is lost where it is, and KV that does not arrive."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.blocks import blocks_to_admit
from workbench.serving.kernels.failing import fail
from workbench.serving.kernels.flows import drop_flow, share_rates
from workbench.serving.kernels.layout import (
    COMING,
    DECODES,
    FLOW,
    FREE,
    INSTANCE,
    LANDED,
    LANDED_HEAD,
    LEAVING_HEAD,
    LEAVING_TAIL,
    MADE,
    MOVES,
    NEED,
    NEXT,
    OUTPUT,
    OUTSTANDING,
    PREFILL,
    PROMPT,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUED,
    RIGHT,
    ROLE,
    ROUTER_HEAD,
    ROUTER_TAIL,
    STAYING,
    STORED,
    TOKENS,
    WAITING,
    WAITING_TOKENS,
)
from workbench.serving.kernels.lists import merged
from workbench.serving.kernels.roles_layout import REQUEST, TARGET, UNDER_WAY
from workbench.serving.kernels.routing import wake


@inner_kernel
def lose(state, router, links, j, m, models, now_s):
    """An instance that has been brought up to now fails; what it had, or was to get, waits at the router."""
    one = state.instances[j]
    if one[ROLE] == DECODES:
        _turn_back(state, router, links, j, m + models, now_s)
        _queue_lost(state, one, one[LANDED_HEAD], np.int64(NEXT), one[LANDED])
        one[LANDED] = 0
    else:
        count = _cancel(state, links, one, now_s)
        forget_waiting(state, router, j, m + models)
        _queue_lost(state, one, one[LEAVING_HEAD], np.int64(RIGHT), count)
        one[LEAVING_HEAD] = one[LEAVING_TAIL] = -1
        one[OUTSTANDING] += count
    share_rates(links)
    fail(state, router, j, m)


@inner_kernel
def _queue_lost(state, one, r, link, count):
    """Put requests of a list without their KV into the queue, before their equals there."""
    requests, first, last = state.requests, np.int64(-1), np.int64(-1)
    for _ in range(count):
        after = requests[r, link]
        requests[r, STORED] = 0
        requests[r, NEED] = requests[r, PROMPT] + requests[r, MADE]
        requests[r, NEXT] = -1
        first, last = merged(requests, first, last, r, r)
        r = after
    one[QUEUE_HEAD], one[QUEUE_TAIL] = merged(requests, first, last, one[QUEUE_HEAD], one[QUEUE_TAIL])
    one[QUEUED] += count


@inner_kernel
def _cancel(state, links, one, now_s):
    """Drop the flows out of an instance, whose targets get back their blocks; how many are leaving it."""
    requests, r, count = state.requests, one[LEAVING_HEAD], 0
    while r >= 0:
        count += 1
        if requests[r, FLOW] >= 0:
            drop_flow(links, np.int64(requests[r, FLOW]), now_s)
            requests[r, FLOW] = -1
            target = state.instances[requests[r, INSTANCE]]
            target[FREE] += blocks_to_admit(requests, target, r)
            target[COMING] -= 1
            target[OUTSTANDING] -= 1
            target[TOKENS] -= requests[r, OUTPUT] - requests[r, MADE]
            wake(state, np.int64(requests[r, INSTANCE]), now_s)
        r = requests[r, RIGHT]
    return count


@inner_kernel
def forget_waiting(state, router, j, waiting):
    """Those of an instance that wait to decode do so no longer."""
    requests, line = state.requests, router.lines[waiting]
    r, last = line[ROUTER_HEAD], np.int64(-1)
    while r >= 0:
        after = requests[r, NEXT]
        if requests[r, PREFILL] == j:
            line[WAITING] -= 1
            line[WAITING_TOKENS] -= requests[r, NEED]
            if last < 0:
                line[ROUTER_HEAD] = after
            else:
                requests[last, NEXT] = after
        else:
            last = r
        r = after
    line[ROUTER_TAIL] = last


@inner_kernel
def _turn_back(state, router, links, j, waiting, now_s):
    """Drop the flows into an instance: their requests wait to decode again, before their equals."""
    requests, one, line = state.requests, state.instances[j], router.lines[waiting]
    first, last, k = np.int64(-1), np.int64(-1), 0
    while k < links.counts[UNDER_WAY]:
        entry = links.active[k]
        if links.flows[entry, TARGET] != j:
            k += 1
            continue
        r = int(links.flows[entry, REQUEST])
        drop_flow(links, entry, now_s)
        requests[r, FLOW] = -1
        requests[r, MOVES] += 1
        if state.instances[requests[r, PREFILL], STAYING] == 1:
            continue
        requests[r, NEXT] = -1
        line[WAITING] += 1
        line[WAITING_TOKENS] += requests[r, NEED]
        first, last = merged(requests, first, last, r, r)
    line[ROUTER_HEAD], line[ROUTER_TAIL] = merged(requests, first, last, line[ROUTER_HEAD], line[ROUTER_TAIL])
    one[OUTSTANDING] -= one[COMING]
    one[COMING] = 0
