"""Hosts that keep a copy for a while after its last use: one timer a host, restarted while its instance runs."""

import numpy as np

from workbench.caching.model.misses import ScaleUps
from workbench.queueing.simulated.clock import Clock


def simulate_scale_ups(need, keep_s: int) -> ScaleUps:
    """The starts and misses of `scale_ups`, by simulation: instance k runs on host k, which forgets its copy."""
    needed = np.asarray(need, dtype=np.int64)
    kept_until = np.full(int(needed.max()), -1.0)
    started, missed = np.zeros_like(needed), np.zeros_like(needed)
    clock = Clock()

    def scale(second: int) -> None:
        running = int(needed[second - 1]) if second else int(needed[0])  # what runs at the start was there before
        for host in range(int(needed[second])):
            if host >= running:
                started[second] += 1
                missed[second] += kept_until[host] < clock.now
            kept_until[host] = clock.now + keep_s

    clock.process(clock.arrivals(np.arange(needed.size, dtype=float), 0, scale))
    clock.run()
    return ScaleUps(needed, started, missed)
