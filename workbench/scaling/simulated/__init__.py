"""SimPy twins of scaling with half-loaded instances."""

from workbench.scaling.simulated.staged import simulate_free_running, simulate_lock_step

__all__ = ["simulate_free_running", "simulate_lock_step"]
