"""The event loop of systems whose clients route each request by themselves, over servers with cache slots.

At one instant completions come first, then waits that were expected to end, then arrivals. A request is admitted to a
route when it arrives, and starts once the time expected for that has come and the servers of the route have slots
enough beside all requests admitted before it.
"""

from typing import NamedTuple

import numpy as np

from workbench.chains.kernels.layout import DONE, STUCK, Jobs, Sharing, jobs_of, sharing_of
from workbench.chains.kernels.sharing import join, leave, next_done
from workbench.chains.policy.allocation import shortest_chain
from workbench.chains.policy.routing import believed_waits, penalties
from workbench.jit import inner_kernel, kernel


class Servers(NamedTuple):
    """Servers and how they are thought of.

    Attributes:
        first, blocks, slots, most_sessions: int64[J]; first block from 0 (-1: none), blocks hosted, cache slots of one
            job and block, and the sessions at which a server is thought full.
        enter_s, block_s, leave_s: float64[J], what a router counts for a server: coming to it, each block, leaving it.
        communication_s, compute_s: float64[J, F], seconds for each unit of work: on the server, and per block there.
        usual: float64[F], the mean work of a request, by which ends are expected.
    """

    first: np.ndarray
    blocks: np.ndarray
    slots: np.ndarray
    most_sessions: np.ndarray
    enter_s: np.ndarray
    block_s: np.ndarray
    leave_s: np.ndarray
    communication_s: np.ndarray
    compute_s: np.ndarray
    usual: np.ndarray


class Routes(NamedTuple):
    """Routes taken.

    Attributes:
        server, share, hops: int64[n, W], int64[n, W] and int64[n], servers of each request, and blocks processed there.
        begin_s, end_s: float64[n], when each was expected to start, and to leave its slots.
        open, count: int64[n] and int64[1], requests admitted and not done, in order, and how many.
    """

    server: np.ndarray
    share: np.ndarray
    hops: np.ndarray
    begin_s: np.ndarray
    end_s: np.ndarray
    open: np.ndarray
    count: np.ndarray


def routed(arrival_s, work, servers: Servers, layers: int, policy: int, penalty_s: float, shared: bool):
    """Serve all requests: the jobs as they were done, their routes, and how it ended (see `layout`)."""
    count, width = arrival_s.size, max(1, min(layers, servers.first.size))
    jobs = jobs_of(arrival_s, work, np.empty((count, 0)))
    routes = Routes(
        np.full((count, width), -1),
        np.zeros((count, width), np.int64),
        np.zeros(count, np.int64),
        np.full(count, np.nan),
        np.full(count, -np.inf),
        np.empty(count, np.int64),
        np.zeros(1, np.int64),
    )
    features = work.shape[1]
    sharing = None
    if shared:
        apart, on = np.zeros((count, features)), np.zeros((count, width, features))
        sharing = sharing_of(servers.first.size, routes.server, routes.hops, apart, on, count)
    return jobs, routes, run_routed(jobs, routes, servers, sharing, layers, policy, penalty_s)


@kernel
def run_routed(jobs: Jobs, routes: Routes, servers: Servers, sharing: Sharing, layers, policy, penalty_s):
    """Serve all requests; see `routed`."""
    job = 0
    while job < jobs.arrival_s.size or routes.count[0] > 0:
        place, done_s = _next_end(jobs, routes, sharing)
        due_s = _next_due(jobs, routes)
        came_s = jobs.arrival_s[job] if job < jobs.arrival_s.size else np.inf
        now_s = min(done_s, due_s, came_s)
        if now_s == np.inf:
            return STUCK
        if done_s == now_s:
            _end(jobs, routes, sharing, place, now_s)
        elif due_s != now_s:
            if not _admit(jobs, routes, servers, job, layers, policy, penalty_s):
                return STUCK
            job += 1
        _begin_all(jobs, routes, servers, sharing, now_s)
    return DONE


@inner_kernel
def _next_end(jobs, routes, sharing):
    """Where in the list of open requests, or among those in service, the one that is done next stands, and when."""
    if sharing is not None:
        return next_done(sharing, jobs)
    best, best_s = -1, np.inf
    for place in range(routes.count[0]):
        if jobs.finish_s[routes.open[place]] < best_s:  # not a number while it waits
            best, best_s = place, jobs.finish_s[routes.open[place]]
    return best, best_s


@inner_kernel
def _next_due(jobs, routes):
    """When the next request is expected to start that has not been looked at since it was due."""
    due_s = np.inf
    for place in range(routes.count[0]):
        request = routes.open[place]
        if np.isnan(jobs.start_s[request]) and jobs.chain[request] < 0:
            due_s = min(due_s, routes.begin_s[request])
    return due_s


@inner_kernel
def _end(jobs, routes, sharing, place, now_s):
    if sharing is not None:
        request = sharing.active[place]
        jobs.finish_s[request] = now_s
        leave(sharing, jobs, place, now_s)
        place = 0
        while routes.open[place] != request:
            place += 1
    routes.count[0] -= 1
    for at in range(place, routes.count[0]):
        routes.open[at] = routes.open[at + 1]


@kernel
def _admit(jobs, routes, servers, request, layers, policy, penalty_s):
    """Choose a route for a request that arrives. False where there is none."""
    now_s = jobs.arrival_s[request]
    count = servers.first.size
    wait_s, extra_s = np.empty((count, layers + 1)), np.empty((count, layers + 1))
    sessions = np.empty(count, np.int64)
    believed_waits(
        now_s, routes.end_s[:request], routes.server, routes.share, routes.hops, servers.slots, wait_s, sessions
    )
    penalties(policy, wait_s, sessions, servers.most_sessions, penalty_s, extra_s)
    server, share = routes.server[request], routes.share[request]
    hops, _ = shortest_chain(
        servers.first, servers.blocks, servers.slots, servers.enter_s, servers.block_s, servers.leave_s, extra_s,
        layers, server, share,
    )  # fmt: skip
    if hops == 0:
        return False
    routes.hops[request] = hops
    expected_s, usual_s = 0.0, 0.0
    for hop in range(hops):
        expected_s = max(expected_s, wait_s[server[hop], share[hop]])
        usual_s += _service_s(servers, server[hop], share[hop], servers.usual)
    routes.begin_s[request] = now_s + expected_s
    routes.end_s[request] = now_s + expected_s + usual_s
    routes.open[routes.count[0]] = request
    routes.count[0] += 1
    return True


@inner_kernel
def _service_s(servers, server, share, work):
    seconds = 0.0
    for f in range(work.size):
        seconds += work[f] * (servers.communication_s[server, f] + servers.compute_s[server, f] * share)
    return seconds


@kernel
def _begin_all(jobs, routes, servers, sharing, now_s):
    """Start every request whose time has come and for which there are slots beside those admitted before it.

    A request whose expected start has passed is marked (its chain is its own number): from then on it waits for others
    to end.
    """
    held = np.zeros(servers.slots.size, np.int64)
    for place in range(routes.count[0]):
        request = routes.open[place]
        server, share = routes.server[request], routes.share[request]
        if jobs.chain[request] < 0 and routes.begin_s[request] <= now_s:
            jobs.chain[request] = request
        fits = np.isnan(jobs.start_s[request]) and jobs.chain[request] >= 0
        for hop in range(routes.hops[request]):
            fits = fits and held[server[hop]] + share[hop] <= servers.slots[server[hop]]
        if fits:
            _begin(jobs, routes, servers, sharing, request, now_s)
        for hop in range(routes.hops[request]):
            held[server[hop]] += share[hop]


@inner_kernel
def _begin(jobs, routes, servers, sharing, request, now_s):
    jobs.start_s[request] = now_s
    server, share = routes.server[request], routes.share[request]
    if sharing is None:
        service_s = 0.0
        for hop in range(routes.hops[request]):
            service_s += _service_s(servers, server[hop], share[hop], jobs.work[request])
        jobs.finish_s[request] = now_s + service_s
        return
    for f in range(jobs.work.shape[1]):
        for hop in range(routes.hops[request]):
            sharing.communication_s[request, f] += servers.communication_s[server[hop], f]
            sharing.compute_s[request, hop, f] = servers.compute_s[server[hop], f] * share[hop]
    join(sharing, jobs, request, request, now_s)
