"""Chains whose servers load, in SimPy: blocks sent over shared links, and cache slots counted on each server."""

from collections import deque
from collections.abc import Sequence

import numpy as np

from workbench.chains.model.pipelines import NewChain, NewChains
from workbench.queueing import Path
from workbench.queueing.checking import positive, whole
from workbench.queueing.simulated.clock import Clock
from workbench.records import takes_records
from workbench.transfer.model import uniform_network
from workbench.transfer.policy import make_schedule
from workbench.transfer.simulated import simulate

ENDS, OPENS, STARTS = range(3)
"""Order of what happens at one instant."""


def simulate_loading_steps(blocks: Sequence[int], sources: int, added: int) -> list[np.ndarray]:
    """The steps of `loading_steps`, by simulation of each place's multicast with steps of one second."""
    nodes, known = sources + added, {}
    for size in set(blocks):
        run = simulate(make_schedule("k_way", nodes, size, sources=sources), uniform_network(nodes, 1.0), 1.0)
        known[size] = np.rint(run.arrival_s).astype(np.int64)
    return [known[size] for size in blocks]


class _Serving:
    """Jobs that wait, and what can serve them."""

    def __init__(self, clock: Clock, made: NewChains, jobs: int):
        self.clock, self.made = clock, made
        self.free = {where: int(made.slots[where[0]]) for chain in made.chains for where in chain.blocks}
        self.open: list[tuple[int, NewChain]] = []
        self.line = deque(range(jobs))
        self.start_s, self.finish_s = np.full(jobs, np.nan), np.full(jobs, np.nan)
        self.place = np.full(jobs, -1)

    def opening(self, place: int, chain: NewChain, at_s: float):
        """Until the servers of a chain hold its blocks."""
        yield self.clock.at(at_s, OPENS)
        self.open.append((place, chain))
        self.open.sort(key=lambda one: (one[1].service_s, not one[1].complete))
        self.clock.process(self.hand_out())

    def hand_out(self):
        """Behind all that ends and opens at this instant: the next jobs go to the fastest with free slots."""
        yield self.clock.at(self.clock.now, STARTS)
        for place, chain in self.open:
            while self.line and all(self.free[where] >= count for where, count in chain.blocks.items()):
                for where, count in chain.blocks.items():
                    self.free[where] -= count
                self.clock.process(self.serve(self.line.popleft(), place, chain))

    def serve(self, job: int, place: int, chain: NewChain):
        """A job from its begin to its end."""
        self.start_s[job], self.place[job] = self.clock.now, place
        self.finish_s[job] = self.clock.now + chain.service_s
        yield self.clock.at(self.finish_s[job], ENDS)
        for where, count in chain.blocks.items():
            self.free[where] += count
        self.clock.process(self.hand_out())


@takes_records
def simulate_loading(made: NewChains, step_s: float, jobs: int) -> Path:
    """The path of `loading_path`, by simulation."""
    length_s, count = positive(step_s, "step_s"), whole(jobs, "jobs")
    clock = Clock()
    serving = _Serving(clock, made, count)
    for place, chain in enumerate(made.chains):
        clock.process(serving.opening(place, chain, chain.steps * length_s))
    clock.run()
    return Path(np.zeros(count), serving.start_s, serving.finish_s, serving.place)
