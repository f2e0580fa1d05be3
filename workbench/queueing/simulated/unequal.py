"""Unequal servers behind one queue: completions and arrivals as SimPy events, the same dispatch policy."""

from collections import deque

import numpy as np

from workbench.queueing.model.paths import ordered_classes
from workbench.queueing.path import Customers, Path, checked
from workbench.queueing.policy import pick_fastest_free
from workbench.queueing.simulated.clock import Clock


class _Servers:
    """Free slots of each class, in the order of dispatch, and the queue behind all of them."""

    def __init__(self, clock: Clock, work: np.ndarray, rates_per_s: np.ndarray, slots: np.ndarray):
        self.clock, self.work, self.rates_per_s = clock, work, rates_per_s
        self.free, self.line = slots.copy(), deque()
        self.start_s, self.finish_s = np.full(work.size, np.nan), np.full(work.size, np.nan)
        self.place = np.full(work.size, -1)

    def meet(self, customer: int) -> None:
        free_from_s = np.where(self.free > 0, self.clock.now, np.inf)
        place = pick_fastest_free(self.clock.now, free_from_s)
        if place < 0:
            self.line.append(customer)
        else:
            self.clock.process(self.serve(customer, place))

    def serve(self, customer: int, place: int):
        self.free[place] -= 1
        self.start_s[customer], self.place[customer] = self.clock.now, place
        self.finish_s[customer] = self.clock.now + self.work[customer] / self.rates_per_s[place]
        yield self.clock.at(self.finish_s[customer], 2 + place)  # of two that end together the faster takes the next
        self.free[place] += 1
        if self.line:
            self.clock.process(self.serve(self.line.popleft(), place))


def simulate_fastest_free(customers: Customers, service_rates_per_s, slots=None) -> Path:
    """The path of `fastest_free_path`, by simulation."""
    arrival, work = checked(customers)
    rates, counts, order = ordered_classes(service_rates_per_s, slots)
    clock = Clock()
    servers = _Servers(clock, work, rates, counts)
    clock.process(clock.arrivals(arrival, 2 + rates.size, servers.meet))
    clock.run()
    return Path(arrival, servers.start_s, servers.finish_s, order[servers.place])
