"""Dispatch to chains in SimPy: jobs, chains and the central line as processes, the same policies."""

from collections import deque
from collections.abc import Callable

import numpy as np

from workbench.chains.model.jobs import JobList
from workbench.chains.model.paths import check_end, laid_out
from workbench.chains.model.serving import Served
from workbench.chains.policy import Dispatch, choose, policy_number
from workbench.chains.simulated.sharing import Shared, summed
from workbench.errors import UserError
from workbench.queueing import Path
from workbench.queueing.simulated.clock import Clock

_BAD, _STUCK = 1, 2


class _Desk:
    """The central line, the chains with their own lines, and who is asked where the head of the line goes."""

    def __init__(self, clock: Clock, jobs: JobList, chains: Served, ask: Callable, contention: bool):
        self.clock, self.chains, self.ask = clock, chains, ask
        self.made, _ = laid_out(jobs, chains, False)
        self.line: deque[int] = deque()
        self.lines = [deque() for _ in chains.slots]
        self.running = [0] * chains.slots.size
        self.inside = np.zeros(chains.slots.size, dtype=np.int64)
        self.shared = Shared(clock, self.end) if contention else None

    def meet(self, job: int) -> None:
        """A job arrives."""
        self.line.append(job)
        self.hand_out()

    def hand_out(self) -> None:
        """Send heads of the central line on until the policy keeps one there."""
        while self.line:
            k = self.ask(self.inside, len(self.line), self.made.draw[self.line[0]])
            if k < 0:
                return
            job = self.line.popleft()
            self.inside[k] += 1
            self.made.chain[job] = k
            if self.running[k] < self.chains.slots[k]:
                self.start(job, k)
            else:
                self.lines[k].append(job)

    def start(self, job: int, k: int) -> None:
        """A job begins on chain k."""
        self.running[k] += 1
        self.made.start_s[job] = self.clock.now
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
        """A job leaves chain k; the next in its line starts, then the central line is asked."""
        self.made.finish_s[job] = self.clock.now
        self.running[k] -= 1
        self.inside[k] -= 1
        if self.lines[k]:
            self.start(self.lines[k].popleft(), k)
        self.hand_out()


def simulate_dispatch(
    jobs: JobList, chains: Served, policy: Dispatch | Callable = "jffc", *, contention: bool = False
) -> Path:
    """The path of `dispatch_path`, by simulation; `policy` may be any Python function of that signature."""
    memory = np.zeros(chains.slots.size)

    def ask(inside: np.ndarray, waiting: int, draw: np.ndarray) -> int:
        if isinstance(policy, str):
            return choose(number, inside, chains.slots, chains.rates_per_s, waiting, draw, memory)
        return _asked(policy, inside, chains, waiting, draw, memory)

    number = policy_number(policy) if isinstance(policy, str) else 0
    clock = Clock()
    desk = _Desk(clock, jobs, chains, ask, contention)
    clock.process(clock.arrivals(desk.made.arrival_s, 2 + chains.slots.size, desk.meet))
    clock.run()
    if desk.line:
        check_end(_STUCK)
    made = desk.made
    return Path(made.arrival_s, made.start_s, made.finish_s, chains.order[made.chain])


def _asked(policy: Callable, inside: np.ndarray, chains: Served, waiting: int, draw: np.ndarray, memory) -> int:
    try:
        k = policy(inside.copy(), chains.slots, chains.rates_per_s, waiting, draw, memory)
        known = -1 <= k < chains.slots.size and int(k) == k
    except Exception as error:
        text = " ".join(str(error).split()) or "no message"
        raise UserError(f"The dispatch function failed with {type(error).__name__}: {text}; correct it.") from error
    if not known:
        check_end(_BAD)
    return int(k)
