"""SimPy twins of the compiled loops, calling the same policies, and jobs token by token."""

from workbench.chains.simulated.dispatching import simulate_dispatch
from workbench.chains.simulated.pipelines import simulate_loading, simulate_loading_steps
from workbench.chains.simulated.routing import simulate_routed
from workbench.chains.simulated.stepping import simulate_steps
from workbench.chains.simulated.switching import simulate_switching

__all__ = [
    "simulate_dispatch",
    "simulate_loading",
    "simulate_loading_steps",
    "simulate_routed",
    "simulate_steps",
    "simulate_switching",
]
