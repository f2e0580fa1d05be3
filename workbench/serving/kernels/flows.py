"""Flows that share the ports of a network max-min fairly: each gets what its most crowded port leaves it.

Rates change whenever a flow begins, ends or is dropped. Until then the bytes left of each go down at its own rate.
"""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.roles_layout import (
    CAPACITY,
    END_S,
    FLOWS_USED,
    LATENCY_S,
    LEFT_BYTES,
    NEXT_FLOW,
    NEXT_LANDING_S,
    RATE,
    REQUEST,
    SINCE_S,
    SIZE,
    SOURCE,
    START_S,
    TARGET,
    UNDER_WAY,
    UNSHARED,
)


@inner_kernel
def begin_flow(links, request, source, target, size, now_s):
    """A transfer begins; the row of its log, which has room. Rates are to be shared anew."""
    _count_down(links, now_s)
    entry = links.counts[FLOWS_USED]
    links.counts[FLOWS_USED] = entry + 1
    flow = links.flows[entry]
    flow[START_S], flow[END_S], flow[REQUEST], flow[SOURCE], flow[TARGET] = now_s, np.nan, request, source, target
    flow[SIZE], flow[LEFT_BYTES], flow[RATE] = size, size, 0.0
    links.active[links.counts[UNDER_WAY]] = entry
    links.counts[UNDER_WAY] += 1
    return entry


@inner_kernel
def drop_flow(links, entry, now_s):
    """A flow is under way no longer, done or not. Rates are to be shared anew."""
    _count_down(links, now_s)
    k = 0
    while links.active[k] != entry:
        k += 1
    links.counts[UNDER_WAY] -= 1
    for later in range(k, links.counts[UNDER_WAY]):
        links.active[later] = links.active[later + 1]


@inner_kernel
def _count_down(links, now_s):
    """What has been sent since rates changed last is no longer left."""
    passed_s = now_s - links.clock[SINCE_S]
    links.clock[SINCE_S] = now_s
    for k in range(links.counts[UNDER_WAY]):
        flow = links.flows[links.active[k]]
        if flow[RATE] < np.inf:
            flow[LEFT_BYTES] = max(0.0, flow[LEFT_BYTES] - flow[RATE] * passed_s)


@inner_kernel
def share_rates(links):
    """Give each flow its rate, and find the one that ends next."""
    ports, crowd, count = links.ports, links.crowd, crowd_of(links)
    while count > 0:
        tightest, share = np.int64(-1), np.inf
        for p in range(crowd.size):
            if crowd[p] > 0 and ports[p, UNSHARED] / crowd[p] < share:
                tightest, share = p, ports[p, UNSHARED] / crowd[p]
        for k in range(links.counts[UNDER_WAY]):
            flow = links.flows[links.active[k]]
            out, into = np.int64(flow[SOURCE]), np.int64(flow[TARGET]) + crowd.size // 2
            if flow[RATE] < 0 and (out == tightest or into == tightest):
                flow[RATE] = share
                count -= 1
                for p in (out, into):
                    crowd[p] -= 1
                    ports[p, UNSHARED] = max(0.0, ports[p, UNSHARED] - share)
    foresee_landing(links)


@inner_kernel
def crowd_of(links):
    """Count the flows of each port that some port bounds; the others have an infinite rate. How many are bound."""
    for p in range(links.crowd.size):
        links.crowd[p], links.ports[p, UNSHARED] = 0, links.ports[p, CAPACITY]
    count = 0
    for k in range(links.counts[UNDER_WAY]):
        flow = links.flows[links.active[k]]
        out, into = np.int64(flow[SOURCE]), np.int64(flow[TARGET]) + links.crowd.size // 2
        flow[RATE] = np.inf
        if min(links.ports[out, CAPACITY], links.ports[into, CAPACITY]) < np.inf:
            flow[RATE] = -1.0
            count += 1
            links.crowd[out] += 1
            links.crowd[into] += 1
    return count


@inner_kernel
def foresee_landing(links):
    """Work out which flow ends next, and when: the first one begun of those that end first."""
    links.counts[NEXT_FLOW], links.clock[NEXT_LANDING_S] = -1, np.inf
    for k in range(links.counts[UNDER_WAY]):
        flow = links.flows[links.active[k]]
        end_s = flow[START_S] + links.clock[LATENCY_S]
        if flow[RATE] < np.inf:
            end_s = max(links.clock[SINCE_S] + flow[LEFT_BYTES] / flow[RATE], end_s)
        if end_s < links.clock[NEXT_LANDING_S]:
            links.counts[NEXT_FLOW], links.clock[NEXT_LANDING_S] = links.active[k], end_s
