"""A SimPy clock with absolute times and a fixed order of what happens at the same instant."""

import heapq
from collections.abc import Callable

import numpy as np
import simpy


class Clock(simpy.Environment):
    """SimPy's environment, whose `timeout` adds a delay and so misses a wanted time by a rounding error.

    Relies on private names of SimPy 4.1.2 (`_queue`, `_eid`, `_ok`, `_value`), which is why that version is pinned.
    """

    def at(self, time_s: float, priority: int) -> simpy.Event:
        """An event that happens at exactly `time_s`; among those of one time, lower priorities come first."""
        event = simpy.Event(self)
        event._ok, event._value = True, None
        heapq.heappush(self._queue, (time_s, priority, next(self._eid), event))
        return event

    def arrivals(self, arrival_s: np.ndarray, priority: int, meet: Callable[[int], None]):
        """A process in which customers arrive one by one and are met by `meet`."""
        for customer, time_s in enumerate(arrival_s.tolist()):
            yield self.at(time_s, priority)
            meet(customer)
