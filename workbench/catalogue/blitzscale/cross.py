"""Models, traces and clusters crossed: is a large gain one corner of the evaluation?"""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.blitzscale.evaluating import (
    BLITZ,
    BURST,
    CODE,
    CONV,
    KEPT_72B_S,
    KEPT_S,
    PROMPTS,
    SLLM,
    Largest,
    Load,
    Statistic,
    Window,
    Workload,
    prepared,
    serve,
)
from workbench.catalogue.blitzscale.telling import TBT, TTFT, told
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

MODELS = {
    "7B": ("llama-2-7b", 1, (0.45, 0.15), KEPT_S),
    "8B": ("llama-3-8b", 1, (0.45, 0.15), KEPT_S),
    "24B": ("mistral-small-24b-2501", 2, (1.25, 0.2), KEPT_S),
    "72B": ("qwen2.5-72b", 4, (1.25, 0.2), KEPT_72B_S),
}
TRACES = {"AzureCode": CODE.trace, "AzureConv": CONV.trace, "BurstGPT": BURST.trace}
CLUSTERS = {"A": "blitzscale-a", "B": "blitzscale-b"}
REDUCED = "{} reduction against ServerlessLLM"
QUICK_MODELS, QUICK_TRACES = ("8B", "24B"), ("AzureCode", "AzureConv")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["cross"]
    mean = table.group_by("model", "trace", "cluster", maintain_order=True).agg(pl.col(TTFT, TBT).mean())
    parts = []
    for what in (TTFT, TBT):
        best, worst = (mean.sort(what, descending=down).row(0, named=True) for down in (True, False))
        parts.append(
            f"{what} is {_changed(best[what])} at best ({best['model']}, {best['trace']}, cluster "
            f"{best['cluster']}) and {_changed(worst[what])} at worst ({worst['model']}, {worst['trace']}, cluster "
            f"{worst['cluster']})"
        )
    return f"Of {mean.height} combinations, {parameters['statistic']} of {', that of '.join(parts)}."


def _changed(less: float) -> str:
    return f"shorter by {less:.0%}" if less >= 0 else f"longer by {-less:.0%}"


@experiment(
    "blitzscale/cross",
    title="Models, traces and clusters crossed",
    question="Is the largest gain one corner, or does it show for every model, trace and cluster?",
    backends=("compiled",),
    seconds={"compiled": 40.0},
    draw="evaluated.cross",
    panels=(TTFT, TBT),
    say=_say,
    stochastic=True,
    replications=5,
)
def cross(
    context: Context,
    *,
    models: Annotated[
        tuple[str, ...], Par("Models", choices=tuple(MODELS), free=True, source="the four of OSDI'25 paper §6")
    ] = tuple(MODELS),
    traces: Annotated[
        tuple[str, ...], Par("Traces", choices=tuple(TRACES), free=True, source="the three of OSDI'25 paper §6")
    ] = tuple(TRACES),
    clusters: Annotated[
        tuple[str, ...], Par("Clusters", choices=tuple(CLUSTERS), free=True, source="OSDI'25 paper Table 1")
    ] = tuple(CLUSTERS),
    load: Load = 0.3,
    largest_by: Largest = PROMPTS,
    window_s: Window = 120.0,
    statistic: Statistic = "P95",
) -> dict[str, pl.DataFrame]:
    """Reductions of TTFT and TBT by BlitzScale against ServerlessLLM, for each model, trace and cluster.

    Five in eight instances that the cluster holds compute prompts in a full provisioning, by which the load is told;
    scaled, each kind has one at least. A quick run takes two models and the two Azure traces.
    """
    if context.mode == "quick":
        models = [name for name in models if name in QUICK_MODELS] or models
        traces = [name for name in traces if name in QUICK_TRACES] or traces
    rows = []
    for cluster in clusters:
        places = context.cluster(CLUSTERS[cluster]).accelerators
        for model in models:
            name, tp, promise, keep_s = MODELS[model]
            count = places // tp
            full = (max(1, round(count * 5 / 8)), count - max(1, round(count * 5 / 8)))
            for trace in traces:
                one = Workload(
                    f"{model}, {trace}, {cluster}", name, tp, CLUSTERS[cluster], TRACES[trace], full, (1, count - 1),
                    promise, keep_s,
                )  # fmt: skip
                hosts, window = prepared(context, one, load, largest_by, window_s)
                served = [serve(context, one, hosts, system, window) for system in (BLITZ, SLLM)]
                blitz, other = told(served)["totals"].to_dicts()
                gains = {what: 1 - blitz[f"{what} {statistic}"] / other[f"{what} {statistic}"] for what in (TTFT, TBT)}
                gains |= {"gpu_time": 1 - blitz["gpu_allocated_s"] / other["gpu_allocated_s"]}
                rows.append({"model": model, "trace": trace, "cluster": cluster, **gains})
    known = [
        (REDUCED.format(what), f"{row['model']}, {row['trace']}, cluster {row['cluster']}", row[what], "1")
        for row in rows
        for what in (TTFT, TBT)
    ]
    context.incomparable = ""  # nothing published stands beside these
    return {"cross": pl.DataFrame(rows), "headline": headline(known)}
