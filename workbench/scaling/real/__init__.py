"""Serving while loading by real processes: weights, activations and caches really move; torch in the workers only."""

from workbench.executor.transformer_serving.orders import Pace, Replace
from workbench.scaling.real.live import serve_while_loading
from workbench.scaling.real.outcome import BlockRefused, LiveRun, Mode, Prompt
from workbench.scaling.real.reference import check_outputs
from workbench.scaling.real.scaled import choose_live_scale, serve_scaled

__all__ = [
    "BlockRefused",
    "LiveRun",
    "Mode",
    "Pace",
    "Prompt",
    "Replace",
    "check_outputs",
    "choose_live_scale",
    "serve_scaled",
    "serve_while_loading",
]
