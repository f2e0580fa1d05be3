"""Faults that are planted in SimPy's clusters."""

from workbench.serving.simulated import run as simulated_run
from workbench.serving.simulated.instants import Instants


def comes_behind(patch, late: str, early: str):
    """What is `late` at one instant comes behind what is `early`."""

    class Other(Instants):
        def __init__(self, instances):
            super().__init__(instances)
            setattr(self, late, getattr(self, early) + instances)

    patch.setattr(simulated_run, "Instants", Other)
