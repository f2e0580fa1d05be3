"""How many models are busy at once: a SimPy process a request, a count of requests in flight a model."""

from collections import Counter

import numpy as np

from workbench.queueing.model.active_path import ActivePath, checked_owners
from workbench.queueing.path import Customers, checked
from workbench.queueing.simulated.clock import Clock

_ARRIVES, _ENDS = 2, 3
"""A request that arrives when the last one leaves finds its model still busy."""


def simulate_active(customers: Customers, model) -> ActivePath:
    """The path of `active_path`, by simulation."""
    arrival, service = checked(customers)
    owner = checked_owners(model, arrival.size).tolist()
    inside: Counter = Counter()
    seen: list[tuple[float, int]] = []
    clock = Clock()
    active = 0

    def stay(request: int):
        nonlocal active
        name = owner[request]
        inside[name] += 1
        if inside[name] == 1:
            active += 1
            seen.append((clock.now, active))
        yield clock.at(clock.now + service[request], _ENDS)
        inside[name] -= 1
        if inside[name] == 0:
            active -= 1
            seen.append((clock.now, active))

    clock.process(clock.arrivals(arrival, _ARRIVES, lambda request: clock.process(stay(request))))
    clock.run()
    return _steps(seen)


def _steps(seen: list[tuple[float, int]]) -> ActivePath:
    """The last count of every instant, where it differs from the one before."""
    last = dict(seen)
    times, counts = np.array(list(last), dtype=float), np.array(list(last.values()), dtype=np.int64)
    moved = np.diff(counts, prepend=0) != 0
    return ActivePath(times[moved], counts[moved])
