"""SimPy processes of a serving cluster: instances that step, a router that hands out, failures that interrupt both."""

from workbench.serving.simulated.run import simulate

__all__ = ["simulate"]
