"""The user's own benchmark rows become a step-time profile: read, fitted, tested on rows left out, saved by name."""

from workbench.latency.calibration.calibrating import Calibration, calibrate
from workbench.latency.calibration.profile import CalibratedProfile, calibrated, load_profile

__all__ = ["CalibratedProfile", "Calibration", "calibrate", "calibrated", "load_profile"]
