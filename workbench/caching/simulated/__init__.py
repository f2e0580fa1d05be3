"""SimPy twins of the cache replays: processes and events, the same policy, the same answer."""

from workbench.caching.simulated.keep_alive import simulate_keep_alive
from workbench.caching.simulated.loading import simulate_loading
from workbench.caching.simulated.lru import simulate_lru
from workbench.caching.simulated.misses import simulate_scale_ups

__all__ = ["simulate_keep_alive", "simulate_loading", "simulate_lru", "simulate_scale_ups"]
