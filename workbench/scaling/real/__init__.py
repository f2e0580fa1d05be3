"""Serving while loading by real processes: weights, activations and caches really move; torch in the workers only."""

from workbench.executor.transformer_serving.orders import Pace, Replace
from workbench.scaling.real.link_race import LinkRace, race_on_link
from workbench.scaling.real.live import serve_while_loading
from workbench.scaling.real.live_ended import Refusal
from workbench.scaling.real.live_outcome import Cancel, LiveScaleOut, LiveShare
from workbench.scaling.real.live_sharing import share_for_real, share_scaled
from workbench.scaling.real.outcome import BlockRefused, LiveRun, Mode, Prompt
from workbench.scaling.real.reference import check_outputs
from workbench.scaling.real.scaled import choose_live_scale, serve_scaled
from workbench.scaling.real.starting import RealStart, measure_start

__all__ = [
    "BlockRefused",
    "Cancel",
    "LinkRace",
    "LiveRun",
    "LiveScaleOut",
    "LiveShare",
    "Mode",
    "Pace",
    "Prompt",
    "RealStart",
    "Refusal",
    "Replace",
    "check_outputs",
    "choose_live_scale",
    "measure_start",
    "race_on_link",
    "serve_scaled",
    "serve_while_loading",
    "share_for_real",
    "share_scaled",
]
