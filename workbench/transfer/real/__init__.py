"""Multicast by real processes that really move bytes; torch is imported in the workers only."""

from workbench.transfer.real.multicast import run_multicast
from workbench.transfer.real.outcome import RealMulticast, Recovery, WrongBytes
from workbench.transfer.real.scaled import run_scaled_multicast

__all__ = ["RealMulticast", "Recovery", "WrongBytes", "run_multicast", "run_scaled_multicast"]
