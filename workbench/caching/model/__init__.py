"""How long weights are kept, from where starts find them, and how long they take to load."""

from workbench.caching.model.keep_alive import KeepAlive, KeepAliveRun, keep_alive
from workbench.caching.model.loading import Tier, load_seconds
from workbench.caching.model.lru import Evictions, LruCache, lru_evictions
from workbench.caching.model.misses import ScaleUps, instances_needed, scale_ups

__all__ = [
    "Evictions",
    "KeepAlive",
    "KeepAliveRun",
    "LruCache",
    "ScaleUps",
    "Tier",
    "instances_needed",
    "keep_alive",
    "load_seconds",
    "lru_evictions",
    "scale_ups",
]
