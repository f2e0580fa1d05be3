"""Figure 11: attainment against the number of models, and against their rate, for four systems."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.pools import AEGAEON, MUX, PLUS, SLLM
from workbench.catalogue.aegaeon.sweep import Axis, Curve, ends_by_definition, reach, say_reach, sweep, told, values_at
from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Agree, Assumption, Match, Ordering, experiment
from workbench.pooling import ByRate, market_trace, muxserve_places
from workbench.pooling.model.facts import facts
from workbench.pooling.model.rounds import Turns, most_batches, steady_load

SIMULATED = "Aegaeon, as in the simulator"
FASTER = "Aegaeon, as in the simulator at 40 GB/s"
PACE = "Aegaeon, pace alone"
MODELS_A = (16, 32, 36, 44, 48, 56, 64, 68, 72, 80, 96)
MODELS_B = (16, 20, 28, 32, 40, 44, 48, 54, 80)
RATES_C = (0.05, 0.1, 0.15, 0.2, 0.4, 0.7)
QUICK = {"a": (16, 32, 48, 64, 80, 96), "b": (16, 48, 80), "c": (0.05, 0.15, 0.7)}
TRACES = ((0.05, 60.0), (0.1, 60.0), (0.2, 60.0), (0.7, 60.0), (0.1, 120.0), (0.5, 60.0))
X = {"a": "0.1 per s and model", "b": "0.5 per s and model"}
SERVED = "models served at 90 % attainment"
ENDS = "models at 90 % attainment"
RATIO = "load at 90 % attainment, Aegaeon over ServerlessLLM"
FASTER_SERIES = "panel a rerun: attainment, Aegaeon with 40 GB/s switching, x = models"
REALISED = "realised over nominal arrival rate of the shipped traces"
RULE = "MuxServe memory rule"
USUAL_SWITCH_S = 0.7
"""Of the calculation that the number of batches is laid beside."""
RATE = Assumption("weights load at 0.625 of 64 GB/s", {"variant": "simulator"})
CUT = Assumption(
    "requests of a model end with the nominal number, as the artifact's generator has it", {"arrivals": "poisson"}
)
BASES = tuple(
    Assumption("both ServerlessLLM load weights at 16 GB/s", {"baseline_bytes_per_s": rate}) for rate in (8e9, 40e9)
)
DRAWN = "the traces are drawn anew, with log-normal lengths of the same mean and median as those rerun"
FEW = "ours is the mean over 400 models, theirs one draw of fewer"
THEIRS = "the curves of both ServerlessLLM come from the authors' simulator, says their artifact, so ours do"


def _curve(panel: str, name: str) -> str:
    return f"panel {panel} rerun: attainment, {name}, x = " + ("rate per model in 1/s" if panel == "c" else "models")


def _order(panel: str, models: str) -> Ordering:
    claim = f"panel {panel}: with {models} models {PLUS} is below {SLLM}, and that below {AEGAEON}"
    return Ordering(claim, tuple(_curve(panel, name) for name in (PLUS, SLLM, AEGAEON)), models, (CUT,))


@experiment(
    "aegaeon/fig11",
    title="How many models does a pool serve?",
    question="How many models do 16 GPUs serve at 90 % attainment when they take turns token by token, when whole "
    "requests are served, and when two models stay on each GPU?",
    backends=("compiled", "analytic", "simpy"),
    seconds={"compiled": 6.0, "analytic": 0.1, "simpy": 6.0},
    draw="pooling_sweeps.systems",
    panels=("a", "b", "c", "definitions"),
    say=say_reach({"a": "at 0.1 per s and model", "b": "at 0.5"}, "models"),
    stochastic=True,
    replications=pools.RUNS,
    matches=(
        Match(
            (f"panel a: {SERVED}, {AEGAEON}", "panel a: models per decode GPU", f"panel a: {RATIO}",
             f"panel b: {RATIO}"),
            assumptions=(RATE,),
            note=THEIRS,
        ),
        Match((RULE,), fitted=ALL),
        Match(
            tuple(f"{what} over the better baseline, as claimed" for what in ("goodput", "request rate")),
            incomparable={"all panels": "a range over panels, which are judged one by one"},
        ),
        Match(("panel a: models per GPU, prefill GPUs counted",),
              incomparable={"0.1 per s and model": "the published 70 models over 16; ours is judged per decode GPU"}),
        Match(("mean weight size of a model",), incomparable={"": "a parameter of the published market, no result"}),
        Match(
            ("models per 80 GB GPU under static multiplexing",),
            incomparable={"": "an example with two 14B models; what MuxServe's rule can place is judged in its row"},
        ),
        Match(
            ("panel a: models that MuxServe can place",),
            tolerance=0.0,
            assumptions=(Assumption("all models are 7B, as the artifact's script falls back to", {"mux": "mix"}),),
        ),
        Match((REALISED,), incomparable={f"{rate:g} per s, {span:g} s": FEW for rate, span in TRACES}),
        Match(
            (*(_curve(p, AEGAEON) for p in "abc"), *(f"panel {p} rerun: {ENDS}, {AEGAEON}" for p in "ab"),
             FASTER_SERIES),
            note=DRAWN,
            assumptions=(CUT,),
        ),
        Match(note=DRAWN, assumptions=(CUT, *BASES)),
    ),
    orderings=(_order("a", "64"), _order("b", "48")),
    agrees=(
        Agree("attainment, share of time", "curve", ("panel", "label", "x"), "qos-artifact",
              {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def fig11(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    variant: pools.Way = "paper",
    metric: pools.Metric = "qos-artifact",
    arrivals: pools.Arrivals = "artifact",
    prefill: pools.Prefill = 6,
    quota_s: pools.Quota = 4.0,
    mux: Annotated[
        str, Par("MuxServe's models", choices=("all 7B", "mix"), status="published", source="artifact MuxServe/: 7B")
    ] = "all 7B",
    baseline_bytes_per_s: pools.BaselineRate = 16e9,
) -> dict[str, pl.DataFrame]:
    """Attainment by four definitions against models and rate, where it falls below 90 %, and the realised rates.

    Both ServerlessLLM are run as in the authors' simulator, Aegaeon as in the paper and as there. Attainment at which a
    load still counts as served: 90 %. The formula is what the pace of Algorithm 2 alone allows at the steady load.
    """
    common = {"cluster": cluster, "generator": arrivals, "lead": prefill, "quota_s": quota_s}
    axes = _axes(context)
    if context.backend == "analytic":
        return {"curve": _paces(context, axes, cluster, variant, quota_s, prefill)}
    curves = [curve for panel in "abc" for curve in systems(panel, variant, baseline_bytes_per_s)]
    curves.append(Curve("a", MUX, MUX, "paper", {"only": "qwen2.5-7b" if mux == "all 7B" else ""}))
    curves.append(Curve("a40", FASTER, AEGAEON, "simulator", {"switch": ByRate(bytes_per_s=40e9)}))
    table = sweep(context, [curve for curve in curves if curve.panel in axes], axes, common)
    if context.backend == "simpy":
        return {"curve": table}
    realised = _realised(context, arrivals)
    known = [*_known(table, metric), *_rules(context, cluster, mux)]
    known += [(REALISED, row["x"], row["share"], "1") for row in realised.to_dicts()]
    most = most_batches(usual(context, cluster, variant)[0], USUAL_SWITCH_S, Turns(quota_s=quota_s))
    known.append(("batches per decode GPU by the quota formula", "TBT 0.1 s", most, "1"))
    return {"curve": table, "realised": realised, "headline": told(known)}


def systems(
    panel: str, variant: str, baseline_bytes_per_s: float, options: Mapping[str, Any] | None = None
) -> list[Curve]:
    """Aegaeon as asked and as in the authors' simulator, both ServerlessLLM as there, in a panel."""
    options = options or {}
    loads = {"switch": ByRate(bytes_per_s=baseline_bytes_per_s), **options}
    return [
        Curve(panel, AEGAEON, AEGAEON, variant, options),
        Curve(panel, SIMULATED, AEGAEON, "simulator", options),
        Curve(panel, SLLM, SLLM, "simulator", loads),
        Curve(panel, PLUS, PLUS, "simulator", loads),
    ]


def _axes(context: Context) -> dict[str, Axis]:
    if context.backend == "simpy":
        return {"a": Axis((16,), 120.0, rate_per_s=0.1)}
    quick = context.mode == "quick"
    places = QUICK if quick else {"a": MODELS_A, "b": MODELS_B, "c": RATES_C}
    axes = {
        "a": Axis(places["a"], 120.0, rate_per_s=0.1),
        "b": Axis(places["b"], 60.0, rate_per_s=0.5),
        "c": Axis(places["c"], 60.0, models=40),
    }
    return axes if quick else axes | {"a40": Axis((80,), 120.0, rate_per_s=0.1)}


def _known(table: pl.DataFrame, metric: str) -> list[tuple[str, object, float, str]]:
    known: list[tuple[str, object, float, str]] = []
    for panel in "ab":
        names = {AEGAEON: SIMULATED, SLLM: SLLM, PLUS: PLUS}
        ends = {name: reach(table, panel, label, metric) for name, label in names.items()}
        for name, label in names.items():
            known += values_at(table, panel, label, metric, _curve(panel, name))
            known.append((f"panel {panel} rerun: {ENDS}, {name}", X[panel], ends[name], "1"))
        own = reach(table, panel, AEGAEON, metric)
        known.append((f"panel {panel} rerun: {RATIO}", X[panel], ends[AEGAEON] / ends[SLLM], "1"))
        known.append((f"panel {panel}: {RATIO}", X[panel], own / ends[SLLM], "1"))
        known += ends_by_definition(table, panel, AEGAEON, f"panel {panel}: {ENDS}, Aegaeon as run here", X[panel])
        if panel == "a":
            known.append((f"panel a: {SERVED}, {AEGAEON}", X[panel], own, "1"))
            known.append(("panel a: models per decode GPU", X[panel], own / 10, "1"))
    known += values_at(table, "a", FASTER, metric, FASTER_SERIES)
    for name, label in ((AEGAEON, SIMULATED), (SLLM, SLLM)):
        known += values_at(table, "c", label, metric, _curve("c", name))
    for panel in "abc":
        known += values_at(table, panel, AEGAEON, metric, f"panel {panel}: attainment, Aegaeon as run here")
    return known


def _rules(context: Context, cluster: str, mux: str) -> list[tuple[str, object, float, str]]:
    rule = facts().muxserve
    budget = context.cite("MuxServe, budget of a GPU", rule.budget_bytes)
    added = context.cite("MuxServe, beside a model's weights", rule.added_bytes)
    sizes = [14e9] if mux == "all 7B" else [14e9] * 6 + [18e9] * 2 + [26e9] * 2
    placed = muxserve_places(np.array((sizes * 200)[:200]), context.cluster(cluster).accelerators)
    return [
        (RULE, "budget of a GPU", budget, "bytes"),
        (RULE, "taken by a 7B model", 14e9 + added, "bytes"),
        (RULE, "taken by a 13B model", 26e9 + added, "bytes"),
        (f"{RULE}: models that fit on 8 GPUs", "all 7B", int((muxserve_places(np.full(18, 14e9), 8) >= 0).sum()), "1"),
        # Models are placed in order, so those before the first without room are as many as fit.
        ("panel a: models that MuxServe can place", X["a"], int(np.argmax(placed < 0)), "1"),
    ]


def usual(context: Context, cluster: str, variant: str) -> tuple[float, float]:
    """Step and switch time of the mix on average: one request of 850 tokens of context."""
    made = pools.models_on(context, 10, cluster, variant).values()
    switch = pools.pooling_on(context.cluster(cluster), variant).switch
    steps = [model.decode[0] + 850 * model.decode[1] + model.decode[2] for model in made]
    return float(np.mean(steps)), float(np.mean([switch.of(model.weight_bytes) for model in made]))


def _paces(
    context: Context, axes: Mapping[str, Axis], cluster: str, variant: str, quota_s: float, prefill: int
) -> pl.DataFrame:
    """1/α where it is below 1, at the steady load: what the pace alone allows, were there no wait for a first turn."""
    step_s, switch_s = usual(context, cluster, variant)
    output, decode = float(facts().lengths.output_mean), context.cluster(cluster).accelerators - prefill
    rows: list[dict[str, Any]] = []
    for panel, axis in axes.items():
        for place in axis.places if panel in "abc" else ():
            models = int(place) if axis.models is None else axis.models
            rate = float(place) if axis.rate_per_s is None else axis.rate_per_s
            load = steady_load(models, decode, rate, output, step_s, switch_s, Turns(quota_s=quota_s))
            about = {"panel": panel, "label": PACE, "models": models, "rate_per_s": rate, "x": float(place)}
            kept = dict.fromkeys(("request", "token", "qos-artifact", "qos-reset"), min(1.0, 1 / load.pace))
            unknown = {"switches_per_s": float("nan"), "mean_pace": load.pace, "realised": 1.0}
            rows.append(about | kept | unknown)
    return pl.DataFrame(rows)


def _realised(context: Context, arrivals: str) -> pl.DataFrame:
    rows = []
    for rate, duration_s in TRACES:
        trace = market_trace(400, rate, duration_s, generator=arrivals, seed=context.seed)
        x = f"{rate:g} per s, {duration_s:g} s"
        rows.append({"x": x, "share": len(trace) / (400 * rate * duration_s)})
    return pl.DataFrame(rows)
