"""Figure 13: attainment against models when the promise is half, 0.3 or 0.2 of the usual one."""

import math
from typing import Annotated

import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.fig11 import BASES, CUT, DRAWN, ENDS, SIMULATED, USUAL_SWITCH_S, systems, usual
from workbench.catalogue.aegaeon.pools import AEGAEON, MUX, PLUS, SLLM
from workbench.catalogue.aegaeon.sweep import Axis, Curve, ends_by_definition, reach, say_reach, sweep, told, values_at
from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, Ordering, experiment
from workbench.pooling import ByRate
from workbench.pooling.model.rounds import Turns, most_batches

SCALES = {"a": 0.5, "b": 0.3, "c": 0.2}
MODELS = (16, 20, 24, 28, 32, 36, 44, 48, 52, 56, 72)
QUICK = (20, 28, 36, 48, 64, 80)
FASTER = "Aegaeon, as in the simulator at 40 GB/s"
MORE = "more models than both baselines, at least"
IDEAL = Assumption("a switch is hidden by all the work since the last one, as in the simulator", {"prefetch": "off"})
PLACED = 32
"""Models of 7B that MuxServe's memory rule lets in on 16 GPUs; see Figure 11."""


def _curve(panel: str, name: str) -> str:
    return f"panel {panel} rerun: attainment at SLO x {SCALES[panel]:g}, {name}, x = models"


def _x(panel: str) -> str:
    return f"SLO x {SCALES[panel]:g}"


@experiment(
    "aegaeon/fig13",
    title="How strict a promise can a pool keep?",
    question="How many models does a pool serve at 90 % attainment when both targets are half, 0.3 and 0.2 as long, "
    "and when does keeping two models on each GPU win?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 5.0, "simpy": 5.0},
    draw="pooling_sweeps.strict",
    panels=("a", "b", "c", "definitions"),
    say=say_reach({"a": "at half the promise", "b": "at 0.3", "c": "at 0.2"}, "models"),
    stochastic=True,
    replications=pools.RUNS,
    matches=(
        Match(
            tuple(f"panel {p}: {MORE}" for p in "ab"),
            assumptions=(Assumption("six of 16 GPUs process prompts", {"prefill": 4}),),
        ),
        Match(
            (*(_curve(p, AEGAEON) for p in SCALES), *(f"panel {p} rerun: {ENDS}, {AEGAEON}" for p in SCALES),
             f"panel c rerun: attainment at SLO x 0.2, {AEGAEON} with 40 GB/s switching, x = models"),
            note=DRAWN,
            assumptions=(CUT, IDEAL),
        ),
        Match(note=DRAWN, assumptions=(CUT, BASES[0])),
    ),
    orderings=tuple(
        Ordering(
            f"panel c: with {models} models ServerlessLLM is below Aegaeon",
            (_curve("c", SLLM), _curve("c", AEGAEON)), models, BASES,
        )
        for models in ("28", "36")
    ),
    agrees=(
        Agree("attainment, share of time", "curve", ("panel", "label", "x"), "qos-artifact",
              {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def fig13(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    variant: pools.Way = "paper",
    metric: pools.Metric = "qos-artifact",
    arrivals: pools.Arrivals = "artifact",
    prefill: pools.Prefill = 6,
    prefetch: Annotated[
        str, Par("Prefetch", choices=("its own", "off", "on", "ideal"), status="published", source="as it is run")
    ] = "its own",
    baseline_bytes_per_s: pools.BaselineRate = 16e9,
) -> dict[str, pl.DataFrame]:
    """Attainment of stricter promises against models at 0.1 requests per s each; the strict TBT is told to the quotas.

    MuxServe holds 32 models of 7B; whether its two models a GPU keep the promise is run here too. Both ServerlessLLM
    are run as in the authors' simulator, Aegaeon as in the paper and as there.
    """
    places = QUICK if context.mode == "quick" else MODELS
    axes = {panel: Axis(places, 120.0, rate_per_s=0.1, scale=scale) for panel, scale in SCALES.items()}
    ahead = {} if prefetch == "its own" else {"prefetch": prefetch}
    curves = [curve for panel in SCALES for curve in systems(panel, variant, baseline_bytes_per_s, ahead)]
    curves = [curve for curve in curves if curve.label != PLUS]  # the figure does not show it
    if context.mode != "quick":
        axes["c40"] = Axis((44, 48), 120.0, rate_per_s=0.1, scale=SCALES["c"])
        curves.append(Curve("c40", FASTER, AEGAEON, "simulator", {"switch": ByRate(bytes_per_s=40e9)}))
    if context.backend == "simpy":
        axes = {"c": Axis((20,), 120.0, rate_per_s=0.1, scale=SCALES["c"])}
        curves = [curve for curve in curves if curve.panel == "c"]
    common = {"cluster": cluster, "generator": arrivals, "lead": prefill}
    table = sweep(context, curves, axes, common)
    if context.backend == "simpy":
        return {"curve": table}
    static = {panel: axis._replace(places=(16, PLACED)) for panel, axis in axes.items() if panel in SCALES}
    mux = [Curve(panel, MUX, MUX, "paper", {"only": "qwen2.5-7b"}) for panel in SCALES]
    table = sweep(context, mux, static, common, before=table)
    known = _known(table, metric)
    step_s, _ = usual(context, cluster, variant)
    most = most_batches(step_s, USUAL_SWITCH_S, Turns(tbt_s=0.02))
    known.append(("panel c: batches per decode GPU by the quota formula", "TBT 0.02 s", most, "1"))
    return {"curve": table, "headline": told(known)}


def _known(table: pl.DataFrame, metric: str) -> list[tuple[str, object, float, str]]:
    known: list[tuple[str, object, float, str]] = []
    for panel in SCALES:
        own, simulated = (reach(table, panel, label, metric) for label in (AEGAEON, SIMULATED))
        known += values_at(table, panel, SIMULATED, metric, _curve(panel, AEGAEON))
        known.append((f"panel {panel} rerun: {ENDS}, {AEGAEON}", _x(panel), simulated, "1"))
        series = f"panel {panel}: {ENDS}, Aegaeon as run here"
        known.append((series, _x(panel), own, "1"))
        known += ends_by_definition(table, panel, AEGAEON, series, _x(panel))
        if panel != "c":
            known.append((f"panel {panel}: {ENDS}, {AEGAEON}", _x(panel), own, "1"))
            best = max(PLACED, reach(table, panel, SLLM, metric))
            known.append((f"panel {panel}: {MORE}", _x(panel), math.nan if math.isnan(best) else own / best - 1, "1"))
    known += values_at(table, "c", SLLM, metric, _curve("c", SLLM))
    faster = f"panel c rerun: attainment at SLO x 0.2, {AEGAEON} with 40 GB/s switching, x = models"
    known += values_at(table, "c", FASTER, metric, faster)
    return known
