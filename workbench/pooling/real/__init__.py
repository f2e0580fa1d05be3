"""Several small transformers share one process by turns, for real: weights, KV caches, quotas, starts and copies."""

from workbench.pooling.real.asked import ByChance, ByQuota, Kind, Prompt
from workbench.pooling.real.running import TurnsRun, require_same, run_turns
from workbench.pooling.real.starting import StartRun, measure_starts

__all__ = [
    "ByChance",
    "ByQuota",
    "Kind",
    "Prompt",
    "StartRun",
    "TurnsRun",
    "measure_starts",
    "require_same",
    "run_turns",
]
