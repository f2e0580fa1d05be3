"""Transfers of a node: each GPU's way to its host carries several at a time, and all share the host's memory."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.pooling.kernels.layout import CAP, FETCH, FLOWS, IN, LEFT, LOAD, NODE, OUT, RATE, SINCE_S
from workbench.pooling.policy.moving import fill_shares


@inner_kernel
def start_flow(s, i, kind, size, cap, now):
    """Begin a transfer of so many bytes; `cap` is its rate where it has its GPU's way to itself."""
    flow = s.flows[i, kind]
    flow[LEFT], flow[RATE], flow[SINCE_S], flow[CAP] = size, 0.0, now, cap
    s.times[i, kind] = now  # marks it as going; `share_out` says when it is done
    share_out(s, s.instances[i, NODE], now)


@inner_kernel
def stop_flow(s, i, kind, now):
    """End a transfer, or give it up."""
    s.times[i, kind] = np.inf
    share_out(s, s.instances[i, NODE], now)


@inner_kernel
def share_out(s, node, now):
    """Give each transfer of a node its rate, and settle those whose rate changes.

    Those into one GPU share its way evenly; then the host's memory is shared max-min fair.
    """
    count = 0
    for i in range(s.first[node], s.first[node + 1]):
        into = 0
        for kind in (LOAD, FETCH, IN):
            into += 1 if s.times[i, kind] < np.inf else 0
        for kind in range(FLOWS):
            if s.times[i, kind] < np.inf:
                s.chosen[count] = i * FLOWS + kind
                s.wanted[count] = s.flows[i, kind, CAP] if kind == OUT else s.flows[i, kind, CAP] / into
                count += 1
    fill_shares(s.wanted, count, s.pool.host_bytes_per_s, s.share)
    for k in range(count):
        i, kind = s.chosen[k] // FLOWS, s.chosen[k] % FLOWS
        flow = s.flows[i, kind]
        if flow[RATE] != s.share[k]:
            flow[LEFT] = max(0.0, flow[LEFT] - (now - flow[SINCE_S]) * flow[RATE])
            flow[SINCE_S], flow[RATE] = now, s.share[k]
            s.times[i, kind] = now + flow[LEFT] / flow[RATE]
