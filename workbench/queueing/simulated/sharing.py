"""Jobs that run at once: SimPy wakes up whenever one arrives or ends, and works off what each has left."""

from collections import deque

import numpy as np

from workbench.queueing.checking import levels
from workbench.queueing.model.paths import NO_LIMIT, batch_progress
from workbench.queueing.path import Customers, Path, checked
from workbench.queueing.simulated.clock import Clock

_ENDS, _ARRIVES = 2, 3


class _SharedServer:
    """Jobs inside with the work each has left; every change of their number starts a new wait for the next end."""

    def __init__(self, clock: Clock, work: np.ndarray, progress_per_s: np.ndarray, places: int):
        self.clock, self.work, self.progress_per_s, self.places = clock, work, progress_per_s, places
        self.left: dict[int, float] = {}
        self.line: deque[int] = deque()
        self.settled_s, self.epoch = 0.0, 0
        self.start_s, self.finish_s = np.full(work.size, np.nan), np.full(work.size, np.nan)

    def meet(self, job: int) -> None:
        if len(self.left) + len(self.line) < self.places:
            self.settle()
            self.line.append(job)
            self.fill()

    def settle(self) -> None:
        """Take off what was done since the last change."""
        if self.left:
            done = (self.clock.now - self.settled_s) * self.progress_per_s[len(self.left) - 1]
            self.left = {job: rest - done for job, rest in self.left.items()}
        self.settled_s = self.clock.now

    def fill(self) -> None:
        """Start who may start, and wait for the next end; the wait before this one is void."""
        while self.line and len(self.left) < self.progress_per_s.size:
            job = self.line.popleft()
            self.left[job], self.start_s[job] = self.work[job], self.clock.now
        self.epoch += 1
        if self.left:
            self.clock.process(self.next_end(self.epoch))

    def next_end(self, epoch: int):
        job = min(self.left, key=self.left.get)
        wait_s = max(0.0, self.left[job]) / self.progress_per_s[len(self.left) - 1]
        yield self.clock.at(self.clock.now + wait_s, _ENDS)
        if epoch == self.epoch:
            self.settle()
            del self.left[job]
            self.finish_s[job] = self.clock.now
            self.fill()


def _run(arrival: np.ndarray, work: np.ndarray, progress_per_s: np.ndarray, places: int) -> Path:
    clock = Clock()
    server = _SharedServer(clock, work, progress_per_s, places)
    clock.process(clock.arrivals(arrival, _ARRIVES, server.meet))
    clock.run()
    return Path(arrival, server.start_s, server.finish_s)


def simulate_processor_sharing(customers: Customers) -> Path:
    """The path of `processor_sharing_path`, by simulation."""
    arrival, work = checked(customers)
    return _run(arrival, work, 1 / np.arange(1.0, arrival.size + 1), NO_LIMIT)


def simulate_batched(
    customers: Customers, step_fixed_s: float, step_per_job_s: float, max_batch: int, places: int | None = None
) -> Path:
    """The path of `batched_path`, by simulation."""
    progress = batch_progress(step_fixed_s, step_per_job_s, max_batch)
    return _run(
        *checked(customers), progress, NO_LIMIT if places is None else levels(places, "places", progress.size, NO_LIMIT)
    )
