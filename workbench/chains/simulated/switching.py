"""Chains formed anew, in SimPy: switches, drained servers and loads as events."""

from collections import deque

import numpy as np

from workbench.chains.model.jobs import JobList
from workbench.chains.model.online import Plan, laid_out
from workbench.chains.simulated.sharing import summed
from workbench.queueing import Path
from workbench.queueing.simulated.clock import Clock
from workbench.records import takes_records


class _Chain:
    """One chain of one set."""

    def __init__(self, number: int, slots: int, seconds: np.ndarray, servers: list[int]):
        self.number, self.slots, self.seconds, self.servers = number, slots, seconds, servers
        self.running, self.open = 0, False


class _Sets:
    """The sets of chains, the one in power, and the jobs that wait for a free chain of it."""

    def __init__(self, clock: Clock, jobs: JobList, planned: Plan):
        self.clock, self.jobs, self.planned = clock, jobs, planned
        every, epochs = laid_out(planned)
        self.sets: list[list[_Chain]] = []
        for number, one in enumerate(every):
            first = int(epochs.begin[number])
            self.sets.append(
                [
                    _Chain(first + k, int(one.slots[k]), one.seconds[k], one.server[k, : one.hops[k]].tolist())
                    for k in range(one.slots.size)
                ]
            )
        self.place_of = {chain.number: number for number, chains in enumerate(self.sets) for chain in chains}
        self.total = int(epochs.begin[-1])
        self.power = 0
        for chain in self.sets[0]:
            chain.open = True
        self.busy_s = [0.0] * every[0].servers
        self.line: deque[int] = deque()
        count = jobs.arrival_s.size
        self.start_s, self.finish_s = np.full(count, np.nan), np.full(count, np.nan)
        self.place = np.full(count, -1)

    @property
    def opens(self) -> int:
        """Priority of a chain that opens: behind all completions, before switches and arrivals."""
        return 2 + self.total

    def meet(self, job: int) -> None:
        """A job arrives."""
        self.line.append(job)
        self.hand_out()

    def switches(self):
        """One set after the other takes over."""
        for number in range(1, len(self.sets)):
            yield self.clock.at(float(self.planned.switch_s[number]), self.opens + 1)
            self.power = number
            for j, load_s in enumerate(self.planned.load_s[number].tolist()):
                self.busy_s[j] = max(self.clock.now, self.busy_s[j]) + load_s
            for chain in self.sets[number]:
                ready_s = max([self.clock.now, *(self.busy_s[j] for j in chain.servers)])
                self.clock.process(self.opening(chain, number, ready_s))

    def opening(self, chain: _Chain, number: int, ready_s: float):
        """Until all servers of a chain belong to it."""
        yield self.clock.at(ready_s, self.opens)
        chain.open = True
        if number == self.power:
            self.hand_out()

    def hand_out(self) -> None:
        """Start jobs on the fastest free chains of the set in power."""
        while self.line:
            free = [chain for chain in self.sets[self.power] if chain.open and chain.running < chain.slots]
            if not free:
                return
            self.clock.process(self.serve(self.line.popleft(), free[0]))
            free[0].running += 1

    def serve(self, job: int, chain: _Chain):
        """A job in service."""
        end_s = self.clock.now + summed(self.jobs.work[job], chain.seconds)
        self.start_s[job], self.finish_s[job], self.place[job] = self.clock.now, end_s, self.place_of[chain.number]
        for j in chain.servers:
            self.busy_s[j] = max(self.busy_s[j], end_s)
        yield self.clock.at(end_s, 2 + chain.number)
        chain.running -= 1
        self.hand_out()


@takes_records
def simulate_switching(jobs: JobList, planned: Plan) -> Path:
    """The path of `switching_path`, by simulation."""
    clock = Clock()
    sets = _Sets(clock, jobs, planned)
    clock.process(sets.switches())
    clock.process(clock.arrivals(np.asarray(jobs.arrival_s, dtype=float), sets.opens + 2, sets.meet))
    clock.run()
    return Path(np.asarray(jobs.arrival_s, dtype=float), sets.start_s, sets.finish_s, sets.place)
