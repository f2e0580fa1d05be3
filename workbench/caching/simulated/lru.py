"""An LRU cache: a SimPy process that meets requests, an ordered table that forgets its oldest entry."""

from collections import OrderedDict

import numpy as np

from workbench.caching.model.lru import Evictions, checked_requests
from workbench.queueing.simulated.clock import Clock


def simulate_lru(time_s, model, capacity: int) -> Evictions:
    """The evictions of `lru_evictions`, by simulation."""
    times, wanted = checked_requests(time_s, model)
    names = wanted.tolist()
    cache: OrderedDict[int, tuple[float, float]] = OrderedDict()  # model -> loaded, last used; oldest use first
    gone: list[tuple[float, float]] = []
    clock = Clock()

    def meet(request: int) -> None:
        loaded, _ = cache.pop(names[request], (clock.now, clock.now))
        if len(cache) == capacity:
            _, (since, used) = cache.popitem(last=False)
            gone.append((clock.now - since, clock.now - used))
        cache[names[request]] = loaded, clock.now

    clock.process(clock.arrivals(times, 0, meet))
    clock.run()
    rows = np.array(gone, dtype=float).reshape(-1, 2)
    return Evictions(rows[:, 0], rows[:, 1])
