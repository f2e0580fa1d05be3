"""Dispatch to chains in SimPy: jobs and chains as processes, the same policies."""

from collections.abc import Callable

from workbench.chains.kernels.layout import STUCK
from workbench.chains.model.desk import Desk
from workbench.chains.model.jobs import JobList
from workbench.chains.model.paths import check_end, laid_out
from workbench.chains.model.serving import Served
from workbench.chains.policy import Dispatch
from workbench.chains.simulated.sharing import Shared, summed
from workbench.queueing import Path
from workbench.queueing.simulated.clock import Clock
from workbench.records import takes_records


class _Service:
    """Jobs in service on chains, and the desk that hands them out."""

    def __init__(self, clock: Clock, jobs: JobList, chains: Served, policy: Dispatch | Callable, contention: bool):
        self.clock, self.chains = clock, chains
        self.made, _ = laid_out(jobs, chains, False)
        self.desk = Desk(chains, policy, self.made.draw, self.start)
        self.shared = Shared(clock, self.end) if contention else None

    def start(self, job: int, k: int) -> None:
        """A job begins on chain k."""
        self.made.start_s[job], self.made.chain[job] = self.clock.now, k
        if self.shared is None:
            self.clock.process(self.serve(job, k))
            return
        work, chains = self.made.work[job], self.chains
        on_s = [(int(chains.server[k, hop]), summed(work, chains.compute_s[k, hop])) for hop in range(chains.hops[k])]
        self.shared.join(job, k, summed(work, chains.communication_s[k]), on_s)

    def serve(self, job: int, k: int):
        """A job in service for its nominal time."""
        end_s = self.clock.now + summed(self.made.work[job], self.chains.seconds[k])
        yield self.clock.at(end_s, 2 + k)
        self.end(job, k)

    def end(self, job: int, k: int) -> None:
        """A job leaves chain k."""
        self.made.finish_s[job] = self.clock.now
        self.desk.leave(k)


@takes_records
def simulate_dispatch(
    jobs: JobList, chains: Served, policy: Dispatch | Callable = "jffc", *, contention: bool = False
) -> Path:
    """The path of `dispatch_path`, by simulation; `policy` may be any Python function of that signature."""
    clock = Clock()
    service = _Service(clock, jobs, chains, policy, contention)
    clock.process(clock.arrivals(service.made.arrival_s, 2 + chains.slots.size, service.desk.meet))
    clock.run()
    if service.desk.line:
        check_end(STUCK)
    made = service.made
    return Path(made.arrival_s, made.start_s, made.finish_s, chains.order[made.chain])
