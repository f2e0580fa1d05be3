"""SimPy twins of the compiled loops, calling the same policies."""

from workbench.chains.simulated.dispatching import simulate_dispatch
from workbench.chains.simulated.routing import simulate_routed

__all__ = ["simulate_dispatch", "simulate_routed"]
