"""Step times beside other people's measurements: kernels, layers, whole servers."""

from workbench.latency.validation.anchors import anchor_errors
from workbench.latency.validation.kernel_errors import kernel_errors
from workbench.latency.validation.layer_errors import layer_errors
from workbench.latency.validation.recorded import recorded_statistics
from workbench.latency.validation.rtx_steps import rtx_step_errors
from workbench.latency.validation.tpot import tpot_errors, tpot_points

__all__ = [
    "anchor_errors",
    "kernel_errors",
    "layer_errors",
    "recorded_statistics",
    "rtx_step_errors",
    "tpot_errors",
    "tpot_points",
]
