"""Flows that share the ports of a network max-min fairly: each gets what its most crowded port leaves it.

Rates change whenever a flow begins, ends or is dropped, and a port fails or is back. Until then the bytes left of each
go down at its own rate.
"""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.roles_layout import (
    CAPACITY,
    END_S,
    FLOWS_USED,
    HOP_AT,
    HOPS,
    INSTANCES,
    LATENCY_S,
    LEFT_BYTES,
    NEXT_FLOW,
    NEXT_LANDING_S,
    NEXT_TURN_S,
    OP,
    RATE,
    REQUEST,
    SINCE_S,
    SIZE,
    SOURCE,
    START_S,
    STOP_S,
    TARGET,
    TURN_S,
    TURNED,
    TURNS_PORT,
    TURNS_RATE,
    UNDER_WAY,
    UNEVEN,
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
    flow[STOP_S], flow[OP], flow[HOPS] = np.nan, -1, 0
    links.counts[UNEVEN] = 1
    links.active[links.counts[UNDER_WAY]] = entry
    links.counts[UNDER_WAY] += 1
    return entry


@inner_kernel
def drop_flow(links, entry, now_s):
    """A flow is under way no longer, done or not. Rates are to be shared anew."""
    _count_down(links, now_s)
    links.flows[entry, STOP_S] = now_s
    links.counts[UNEVEN] = 1
    k = 0
    while links.active[k] != entry:
        k += 1
    links.counts[UNDER_WAY] -= 1
    for later in range(k, links.counts[UNDER_WAY]):
        links.active[later] = links.active[later + 1]


@inner_kernel
def turn_port(links, now_s):
    """The port that is due fails or is back; which one. Rates are to be shared anew."""
    _count_down(links, now_s)
    turn = links.turns[links.counts[TURNED]]
    p = np.int64(turn[TURNS_PORT])
    links.ports[p, CAPACITY] = turn[TURNS_RATE]
    links.counts[UNEVEN] = 1
    links.counts[TURNED] += 1
    links.clock[NEXT_TURN_S] = links.turns[links.counts[TURNED], TURN_S]
    return p


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
    links.counts[UNEVEN] = 0
    while count > 0:
        tightest, share = np.int64(-1), np.inf
        for p in range(crowd.size):
            if crowd[p] > 0 and ports[p, UNSHARED] / crowd[p] < share:
                tightest, share = p, ports[p, UNSHARED] / crowd[p]
        for k in range(links.counts[UNDER_WAY]):
            flow = links.flows[links.active[k]]
            if flow[RATE] < 0 and _uses(links, flow, tightest):
                flow[RATE] = share
                count -= 1
                for i in range(_ports(flow)):
                    p = _port(links.hops, flow, i, links.counts[INSTANCES])
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
        flow[RATE] = np.inf
        for i in range(_ports(flow)):
            p = _port(links.hops, flow, i, links.counts[INSTANCES])
            links.crowd[p] += 1
            if links.ports[p, CAPACITY] < np.inf:
                flow[RATE] = -1.0
        if flow[RATE] < 0:
            count += 1
        else:
            for i in range(_ports(flow)):
                links.crowd[_port(links.hops, flow, i, links.counts[INSTANCES])] -= 1
    return count


@inner_kernel
def _ports(flow):
    """How many ports a flow holds."""
    return max(2, 2 * int(flow[HOPS]))


@inner_kernel
def _port(hops, flow, i, instances):
    """One port that a flow holds: out of its source, into all that it passes, out of all of these but the last."""
    source, count = np.int64(flow[SOURCE]), np.int64(flow[HOPS])
    if i == 0:
        return source if source < instances else source + instances
    if hops is None:
        return np.int64(flow[TARGET]) + instances
    if count == 0:
        return np.int64(flow[TARGET]) + instances
    at = np.int64(flow[HOP_AT])
    return hops[at + i - 1, 0] + instances if i <= count else hops[at + i - count - 1, 0]


@inner_kernel
def _uses(links, flow, port):
    """Whether a flow holds a port."""
    i = _ports(flow) - 1
    while i >= 0 and _port(links.hops, flow, i, links.counts[INSTANCES]) != port:
        i -= 1
    return i >= 0


@inner_kernel
def foresee_landing(links):
    """Work out which flow ends next, and when: the first one begun of those that end first."""
    links.counts[NEXT_FLOW], links.clock[NEXT_LANDING_S] = -1, np.inf
    for k in range(links.counts[UNDER_WAY]):
        flow = links.flows[links.active[k]]
        end_s = max(flow[START_S] + links.clock[LATENCY_S], links.clock[SINCE_S])
        if flow[RATE] == 0:
            end_s = np.inf
        elif flow[RATE] < np.inf:
            end_s = max(links.clock[SINCE_S] + flow[LEFT_BYTES] / flow[RATE], end_s)
        if end_s < links.clock[NEXT_LANDING_S]:
            links.counts[NEXT_FLOW], links.clock[NEXT_LANDING_S] = links.active[k], end_s
