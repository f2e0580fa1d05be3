"""Max-min fair rates of flows that each hold several resources at once."""

import numpy as np

from workbench.jit import kernel


@kernel
def max_min_fair(first, resource, bytes_per_s, rate_bytes_per_s):
    """Progressive filling: raise all rates together and freeze the flows through each resource that fills up.

    In the result no resource carries more than its capacity and every flow crosses a full resource on which nobody is
    faster (Bertsekas and Gallager, Data Networks, §6.5.2). A flow without resources gets an infinite rate.

    Parameters (f flows, r resources):
        first: int[f + 1], flow i holds resource[first[i] : first[i + 1]].
        resource: int, resources of all flows one after the other.
        bytes_per_s: float[r], capacities.
        rate_bytes_per_s: float[f], out.
    """
    left = bytes_per_s.copy()
    users = np.zeros(bytes_per_s.size, np.int64)
    for entry in resource:
        users[entry] += 1
    rate_bytes_per_s[:] = -1.0
    while True:
        full, share = -1, np.inf
        for i in range(users.size):
            if users[i] > 0 and (full < 0 or left[i] / users[i] < share):
                full, share = i, left[i] / users[i]
        if full < 0:
            break
        for flow in range(rate_bytes_per_s.size):
            if rate_bytes_per_s[flow] >= 0.0:
                continue
            crosses = False
            for entry in resource[first[flow] : first[flow + 1]]:
                crosses = crosses or entry == full
            if crosses:
                rate_bytes_per_s[flow] = share
                for entry in resource[first[flow] : first[flow + 1]]:
                    left[entry] = max(left[entry] - share, 0.0)
                    users[entry] -= 1
    for flow in range(rate_bytes_per_s.size):
        if rate_bytes_per_s[flow] < 0.0:
            rate_bytes_per_s[flow] = np.inf
