"""Routing by clients in SimPy: each request is admitted to a route, waits for its turn, and is served."""

import numpy as np

from workbench.chains.model.jobs import JobList
from workbench.chains.model.routing import Routed, checked_jobs
from workbench.chains.policy.allocation import shortest_chain
from workbench.chains.policy.routing import believed_waits, penalties
from workbench.chains.simulated.sharing import Shared, sum_in_order, summed
from workbench.errors import UserError
from workbench.queueing import Path
from workbench.queueing.simulated.clock import Clock
from workbench.records import takes_records


class _Request:
    """One request: its route, when it is expected to start, and whether it has."""

    def __init__(self, number: int, route: list[tuple[int, int]], begin_s: float):
        self.number, self.route, self.begin_s, self.started = number, route, begin_s, False


class _Network:
    """Servers with slots, and requests in order of admission."""

    def __init__(self, clock: Clock, arrival_s: np.ndarray, work: np.ndarray, system: Routed, contention: bool):
        self.clock, self.work, self.system, self.servers = clock, work, system, system.servers
        count = arrival_s.size
        self.open: list[_Request] = []
        self.start_s, self.finish_s = np.full(count, np.nan), np.full(count, np.nan)
        width = max(1, min(system.layers, self.servers.first.size))
        self.server, self.share = np.full((count, width), -1), np.zeros((count, width), np.int64)
        self.hops, self.believed_s = np.zeros(count, np.int64), np.full(count, -np.inf)
        self.ends, self.due, self.arrives = 2, 2 + count, 3 + count
        self.shared = Shared(clock, lambda number, _: self.end(number)) if contention else None

    def meet(self, number: int) -> None:
        """A request arrives and is admitted to a route."""
        servers, layers, now_s = self.servers, self.system.layers, self.clock.now
        shape = (servers.first.size, layers + 1)
        wait_s, extra_s, sessions = np.empty(shape), np.empty(shape), np.empty(shape[0], np.int64)
        before = (self.believed_s[:number], self.server, self.share, self.hops)
        believed_waits(now_s, *before, servers.slots, wait_s, sessions)
        penalties(self.system.policy, wait_s, sessions, servers.most_sessions, self.system.penalty_s, extra_s)
        hops, _ = shortest_chain(
            servers.first, servers.blocks, servers.slots, servers.enter_s, servers.block_s, servers.leave_s, extra_s,
            layers, self.server[number], self.share[number],
        )  # fmt: skip
        if not hops:
            raise UserError("No route of these servers has a slot on each of its servers; give more cache.")
        self.hops[number] = hops
        route = list(zip(self.server[number, :hops].tolist(), self.share[number, :hops].tolist(), strict=True))
        expected_s = max(0.0, *(float(wait_s[server, share]) for server, share in route))
        self.believed_s[number] = now_s + expected_s + self.seconds(route, servers.usual)
        request = _Request(number, route, now_s + expected_s)
        self.open.append(request)
        if request.begin_s > now_s:
            self.clock.process(self.wait_for(request))
        self.begin_all()

    def wait_for(self, request: _Request):
        """Until the request is expected to start."""
        yield self.clock.at(request.begin_s, self.due)
        self.begin_all()

    def begin_all(self) -> None:
        """Start each request whose time has come and whose slots are free beside those admitted before it."""
        held = dict.fromkeys(range(self.servers.slots.size), 0)
        for request in list(self.open):
            fits = all(held[server] + share <= self.servers.slots[server] for server, share in request.route)
            if not request.started and request.begin_s <= self.clock.now and fits:
                request.started = True
                self.begin(request)
            for server, share in request.route:
                held[server] += share

    def begin(self, request: _Request) -> None:
        """The request's service begins."""
        number, servers = request.number, self.servers
        self.start_s[number] = self.clock.now
        if self.shared is None:
            self.clock.process(self.serve(number, self.clock.now + self.seconds(request.route, self.work[number])))
            return
        apart = np.array(
            [
                sum_in_order(0.0, (servers.communication_s[j, f] for j, _ in request.route))
                for f in range(self.work.shape[1])
            ]
        )
        on_s = [(j, summed(self.work[number], servers.compute_s[j] * share)) for j, share in request.route]
        self.shared.join(number, number, summed(self.work[number], apart), on_s)

    def serve(self, number: int, end_s: float):
        """Nominal service."""
        yield self.clock.at(end_s, self.ends + number)
        self.end(number)

    def end(self, number: int) -> None:
        """A request leaves; others may begin."""
        self.finish_s[number] = self.clock.now
        self.open = [request for request in self.open if request.number != number]
        self.begin_all()

    def seconds(self, route: list[tuple[int, int]], work: np.ndarray) -> float:
        """Nominal seconds of a route."""
        servers = self.servers
        parts = (summed(work, servers.communication_s[j] + servers.compute_s[j] * share) for j, share in route)
        return sum_in_order(0.0, parts)


@takes_records
def simulate_routed(jobs: JobList, system: Routed, *, contention: bool = False) -> Path:
    """The path of `routed_path`, by simulation."""
    arrival, work = checked_jobs(jobs, system)
    clock = Clock()
    network = _Network(clock, arrival, work, system, contention)
    clock.process(clock.arrivals(arrival, network.arrives, network.meet))
    clock.run()
    return Path(arrival, network.start_s, network.finish_s)
