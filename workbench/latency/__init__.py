"""How long a step takes: roofline, fitted coefficients, published rates and the user's own rows, by one interface."""

from workbench.latency.box import Box, OutsideBox, Range
from workbench.latency.calibration import CalibratedProfile, Calibration, calibrate, calibrated, load_profile
from workbench.latency.estimate import Estimate
from workbench.latency.overheads import Overheads, overheads
from workbench.latency.sources import step_time, step_time_sources
from workbench.latency.step_time import StepTime
from workbench.latency.work import Work, work_of

__all__ = [
    "Box",
    "CalibratedProfile",
    "Calibration",
    "Estimate",
    "OutsideBox",
    "Overheads",
    "Range",
    "StepTime",
    "Work",
    "calibrate",
    "calibrated",
    "load_profile",
    "overheads",
    "step_time",
    "step_time_sources",
    "work_of",
]
