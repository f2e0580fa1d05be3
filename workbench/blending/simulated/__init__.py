"""The SimPy room of blending: an engine that serves a pool step by step."""

from workbench.blending.simulated.engine import Simulated, simulate_serving

__all__ = ["Simulated", "simulate_serving"]
