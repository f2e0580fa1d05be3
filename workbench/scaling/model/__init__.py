"""The analytic face of scaling with half-loaded instances: records in, arrays and tables out."""

from workbench.scaling.model.early import Speed, lanes, paying_overhead_s, tokens_gained, tokens_made, tokens_per_s
from workbench.scaling.model.recomputing import Faster, Switching, faster_to_recompute, move_s, recompute_s
from workbench.scaling.model.scale_out import Formed, ScaleOut, Variant, scale_out
from workbench.scaling.model.staged import Pace, Staged, idle_shares, staged_starts, staged_table
from workbench.scaling.model.tables import multicast_plans, warm_plans
from workbench.scaling.model.warm import WarmStart, warm_start

__all__ = [
    "Faster",
    "Formed",
    "Pace",
    "ScaleOut",
    "Speed",
    "Staged",
    "Switching",
    "Variant",
    "WarmStart",
    "faster_to_recompute",
    "idle_shares",
    "lanes",
    "move_s",
    "multicast_plans",
    "paying_overhead_s",
    "recompute_s",
    "scale_out",
    "staged_starts",
    "staged_table",
    "tokens_gained",
    "tokens_made",
    "tokens_per_s",
    "warm_plans",
    "warm_start",
]
