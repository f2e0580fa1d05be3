"""A SimPy clock with absolute times and a fixed order of what happens at the same instant."""

import heapq

import simpy

DEATH, FLOW_ENDS, FLOW_JOINS, SETTLE = -1, 2, 3, 9
"""Order at one instant: a failure comes first, then ends, then starts; rates are shared out anew when all of it is
done. SimPy's own URGENT (0) and NORMAL (1) events, which carry the consequences of each, come in between."""


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
