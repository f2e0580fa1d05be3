"""Jobs in service on shared servers: whoever joins or leaves changes everybody's pace."""

from collections.abc import Callable, Sequence

import numpy as np

from workbench.queueing.simulated.clock import Clock

OnServers = Sequence[tuple[int, float]]
"""Servers of a job, and its nominal seconds on each."""


class _Job:
    def __init__(self, number: int, rank: int, apart_s: float, on_s: OnServers):
        self.number, self.rank, self.apart_s, self.on_s, self.left = number, rank, apart_s, on_s, 1.0

    def alone_s(self) -> float:
        return sum_in_order(self.apart_s, (on_s for _, on_s in self.on_s))

    def seconds(self, load: dict[int, float]) -> float:
        return sum_in_order(self.apart_s, (on_s * max(1.0, load[server]) for server, on_s in self.on_s))


class Shared:
    """The jobs in service, how far each has come, and who is done next."""

    def __init__(self, clock: Clock, done: Callable[[int, int], None]):
        self.clock, self.done = clock, done
        self.jobs: list[_Job] = []
        self.pace: list[float] = []
        self.settled_s, self.plan = 0.0, 0

    def join(self, number: int, rank: int, apart_s: float, on_s: OnServers) -> None:
        """A job begins; of jobs done at the same instant that of lowest rank ends first."""
        self._settle()
        self.jobs.append(_Job(number, rank, apart_s, on_s))
        self._replan()

    def _settle(self) -> None:
        for job, seconds in zip(self.jobs, self.pace, strict=True):
            done = (self.clock.now - self.settled_s) / seconds if seconds > 0 else 1.0
            job.left = max(0.0, job.left - done)
        self.settled_s = self.clock.now

    def _replan(self) -> None:
        """Work out everybody's pace, and wait for whoever is done first."""
        load: dict[int, float] = {}
        for job in self.jobs:
            alone_s = job.alone_s()
            for server, on_s in job.on_s:
                load[server] = load.get(server, 0.0) + (on_s / alone_s if alone_s > 0 else 0.0)
        self.pace = [job.seconds(load) for job in self.jobs]
        self.plan += 1
        if self.jobs:
            ends = [self.settled_s + job.left * seconds for job, seconds in zip(self.jobs, self.pace, strict=True)]
            place = min(range(len(ends)), key=lambda one: (ends[one], self.jobs[one].rank))
            self.clock.process(self._wait(self.plan, place, ends[place], self.jobs[place].rank))

    def _wait(self, plan: int, place: int, end_s: float, rank: int):
        yield self.clock.at(end_s, 2 + rank)
        if plan != self.plan:
            return  # somebody joined or left meanwhile
        self._settle()
        job = self.jobs.pop(place)
        self._replan()
        self.done(job.number, job.rank)


def summed(work: np.ndarray, seconds: np.ndarray) -> float:
    """Work times seconds, added in order: a dot product may add in another one."""
    return sum_in_order(0.0, (amount * each_s for amount, each_s in zip(work.tolist(), seconds.tolist(), strict=True)))


def sum_in_order(first: float, others) -> float:
    """A sum from the left, which Python's own `sum` of floats is not."""
    for value in others:
        first += value
    return first
