"""How a client that routes each request by itself thinks of the servers: what is taken, and until when."""

import numpy as np

from workbench.jit import kernel

SHORTEST, LEAST_WAIT = 0, 1
"""PETALS: the quickest way for a token, with a penalty on servers thought full. WS-RR of BPRR: the least wait and
service together."""


@kernel
def believed_waits(now_s, end_s, server, share, hops, slots, wait_s, sessions):
    """Fill what is believed of each server: seconds until 0 to L of its slots are free, and sessions it holds.

    Parameters:
        end_s: float64[n], when each request so far is thought to leave its slots; by mean times, never corrected.
        server, share, hops: int64[n, W], int64[n, W] and int64[n], the servers of each request, its slots there.
        slots: int64[J].
        wait_s, sessions: float64[J, L + 1] and int64[J], to be filled; infinity where a server has too few slots.
    """
    free = slots.copy()
    sessions[:] = 0
    open_s = np.flatnonzero(end_s > now_s)
    for request in open_s:
        for hop in range(hops[request]):
            sessions[server[request, hop]] += 1
            free[server[request, hop]] -= share[request, hop]
    for j in range(slots.size):
        for work in range(wait_s.shape[1]):
            wait_s[j, work] = 0.0 if work <= free[j] else np.inf
    for request in open_s[np.argsort(end_s[open_s], kind="mergesort")]:
        for hop in range(hops[request]):
            j = server[request, hop]
            before = free[j]
            free[j] += share[request, hop]
            for work in range(max(before, 0) + 1, min(free[j], wait_s.shape[1] - 1) + 1):
                wait_s[j, work] = end_s[request] - now_s


@kernel
def penalties(policy, wait_s, sessions, most_sessions, penalty_s, extra_s):
    """Fill float64[J, L + 1] with the seconds that a router adds to a server, by blocks processed there."""
    for j in range(sessions.size):
        for work in range(wait_s.shape[1]):
            if policy == LEAST_WAIT:
                extra_s[j, work] = wait_s[j, work]
            else:
                extra_s[j, work] = penalty_s if sessions[j] >= most_sessions[j] else 0.0
