"""SimPy twins of the sample paths: processes and events, the same policies, the same customers, the same path out."""

from workbench.queueing.simulated.active import simulate_active
from workbench.queueing.simulated.clock import Clock
from workbench.queueing.simulated.first_come import simulate_first_come
from workbench.queueing.simulated.rotation import simulate_rotation
from workbench.queueing.simulated.sharing import simulate_batched, simulate_processor_sharing
from workbench.queueing.simulated.unequal import simulate_fastest_free

__all__ = [
    "Clock",
    "simulate_active",
    "simulate_batched",
    "simulate_fastest_free",
    "simulate_first_come",
    "simulate_processor_sharing",
    "simulate_rotation",
]
