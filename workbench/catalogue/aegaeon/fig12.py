"""Figure 12: attainment against models when prompts, or outputs, are twice as long."""

import math
from collections.abc import Mapping

import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.fig11 import BASES, CUT, DRAWN, ENDS, RATIO, SIMULATED, systems
from workbench.catalogue.aegaeon.pools import AEGAEON, PLUS, SLLM
from workbench.catalogue.aegaeon.sweep import Axis, ends_by_definition, reach, say_reach, sweep, told
from workbench.catalogue.context import Context
from workbench.catalogue.spec import Agree, Match, experiment

PANELS = {"a": (0.1, 2.0, 1.0), "b": (0.1, 1.0, 2.0), "c": (0.5, 2.0, 1.0), "d": (0.5, 1.0, 2.0)}
"""Rate of a model, and factors on prompts and outputs."""
MODELS = {0.1: (16, 32, 40, 64, 72, 80, 96), 0.5: (8, 16, 24, 40, 56)}
QUICK = {0.1: (16, 32, 64, 80), 0.5: (16, 56)}
LONGER = {"a": "inputs twice as long", "b": "outputs twice as long"}
X = "0.1 per s and model"
RATIO_B = f"panel b rerun: {RATIO}"
LARGEST = f"panels b and d: {RATIO}, largest"


@experiment(
    "aegaeon/fig12",
    title="What do longer prompts, or longer outputs, cost?",
    question="How many models does a pool serve at 90 % attainment when prompts, or outputs, are twice as long?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 5.0, "simpy": 5.0},
    draw="pooling_sweeps.longer",
    panels=("a", "b", "c", "d", "definitions"),
    say=say_reach(
        {
            "a": "prompts twice as long at 0.1 per s and model",
            "b": "outputs twice as long at 0.1 per s and model",
            "c": "prompts twice as long at 0.5",
            "d": "outputs twice as long at 0.5",
        },
        "models",
    ),
    stochastic=True,
    replications=pools.RUNS,
    matches=(
        Match(tuple(f"panel {p} rerun: {ENDS}, {LONGER[p]}, {AEGAEON}" for p in "ab"), note=DRAWN, assumptions=(CUT,)),
        Match(note=DRAWN, assumptions=(CUT, *BASES)),
    ),
    agrees=(
        Agree("attainment, share of time", "curve", ("panel", "label", "x"), "qos-artifact",
              {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def fig12(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    variant: pools.Way = "paper",
    metric: pools.Metric = "qos-artifact",
    arrivals: pools.Arrivals = "artifact",
    prefill: pools.Prefill = 6,
    baseline_bytes_per_s: pools.BaselineRate = 16e9,
) -> dict[str, pl.DataFrame]:
    """Attainment against models with prompts, and with outputs, times two, at both rates; where it falls below 90 %.

    Both ServerlessLLM are run as in the authors' simulator, Aegaeon as in the paper and as there.
    """
    places = QUICK if context.mode == "quick" else MODELS
    axes, curves = {}, []
    for panel, (rate, prompt, output) in PANELS.items():
        axes[panel] = Axis(places[rate], 120.0 if rate < 0.5 else 60.0, rate_per_s=rate)
        options = {"prompt_factor": prompt, "output_factor": output}
        curves += systems(panel, variant, baseline_bytes_per_s, options)
    if context.backend == "simpy":
        axes = {"b": Axis((16,), 120.0, rate_per_s=0.1)}
        curves = [curve for curve in curves if curve.panel == "b"]
    table = sweep(context, curves, axes, {"cluster": cluster, "generator": arrivals, "lead": prefill})
    if context.backend == "simpy":
        return {"curve": table}
    return {"curve": table, "headline": told(_known(table, metric))}


def _known(table: pl.DataFrame, metric: str) -> list[tuple[str, object, float, str]]:
    known: list[tuple[str, object, float, str]] = []
    ends: Mapping[str, dict[str, float]] = {
        panel: {label: reach(table, panel, label, metric) for label in (AEGAEON, SIMULATED, SLLM, PLUS)}
        for panel in PANELS
    }
    for panel, words in LONGER.items():
        for name, label in {AEGAEON: SIMULATED, SLLM: SLLM, PLUS: PLUS}.items():
            known.append((f"panel {panel} rerun: {ENDS}, {words}, {name}", X, ends[panel][label], "1"))
    known.append((RATIO_B, X, ends["b"][SIMULATED] / ends["b"][SLLM], "1"))
    ratios = [ends[panel][SIMULATED] / ends[panel][SLLM] for panel in "bd"]
    known.append((LARGEST, LONGER["b"], max((r for r in ratios if not math.isnan(r)), default=math.nan), "1"))
    for panel in PANELS:
        series, x = f"panel {panel}: {ENDS}, Aegaeon as run here", f"{PANELS[panel][0]:g} per s and model"
        known.append((series, x, ends[panel][AEGAEON], "1"))
        known += ends_by_definition(table, panel, AEGAEON, series, x)
    return known
