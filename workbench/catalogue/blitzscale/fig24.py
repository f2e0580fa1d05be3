"""Figure 24: prompts and decoding on the same instances: BlitzScale against over- and average-provisioned vLLM."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.blitzscale.evaluating import (
    BLITZ,
    BURST,
    KEPT_S,
    PROMISES,
    RUNS,
    Largest,
    Load,
    Served,
    Window,
    Workload,
    prepared,
    slo_of,
)
from workbench.catalogue.blitzscale.telling import TBT, TTFT, told
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Ordering, experiment
from workbench.operating import simulate, system
from workbench.profiles import Deployment

OVER, AVERAGE = "vLLM, over-provisioned", "vLLM, average"
RATIO = "P99 TTFT over that of average provisioning (vLLM)"
SMALL = Workload("BurstGPT x 7B", "llama-2-7b", 1, "blitzscale-b", BURST.trace, (10, 6), (2, 16), (0.45, 0.15), KEPT_S)
"""Promise and counts, by which the load is told, are those of 8B; the paper states none for 7B, and no cluster."""

SYSTEMS = {
    BLITZ: {"roles": "together", "engine": "continuous", "batch_tokens": None, "autoscaler": "backlog:down_step=1"},
    OVER: {},
    AVERAGE: {},
}
BUILT_ON = {BLITZ: "blitzscale", OVER: "fixed", AVERAGE: "fixed@average"}


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    mean = tables["totals"].group_by("system", maintain_order=True).agg(pl.col(f"{TTFT} P99", "held").mean())
    parts = [f"{row['system']} {row[f'{TTFT} P99']:.3g} s with {row['held']:.0%}" for row in mean.to_dicts()]
    return f"P99 of TTFT with so much of the GPU time of over-provisioning: {', '.join(parts)}."


@experiment(
    "blitzscale/fig24",
    title="Prompts and decoding on the same instances",
    question="Is scaling live as good as having too many instances, where each does both phases?",
    backends=("compiled",),
    seconds={"compiled": 5.0},
    draw="evaluated.fig24",
    panels=("ttft", "tbt", "time"),
    say=_say,
    stochastic=True,
    replications=RUNS,
    orderings=(
        Ordering(
            "P99 of TTFT: over-provisioned below BlitzScale below average",
            tuple(f"{TTFT} P99, {name}" for name in (OVER, BLITZ, AVERAGE)),
        ),
    ),
)
def fig24(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster", profile="cluster", source="chosen: cluster B; the paper does not say which")
    ] = SMALL.cluster,
    load: Load = 0.5,
    largest_by: Largest = PROMISES,
    window_s: Window = 300.0,
) -> dict[str, pl.DataFrame]:
    """TTFT, TBT and GPU time of Llama-2-7B; instances do both phases, new ones get weights by chains and help.

    Over-provisioned: all of the cluster. Average: as many instances as the requests need on average.
    """
    hosts, trace = prepared(context, SMALL, load, largest_by, window_s, cluster)
    served = []
    for name, changes in SYSTEMS.items():
        context.tell(name)
        deployment = Deployment(colocated=True, prefill=SMALL.bounds) if name == BLITZ else Deployment()
        run = simulate(
            system(BUILT_ON[name], name=name, **changes),
            cluster=hosts,
            models=SMALL.model,
            trace=trace,
            deployment=deployment,
            slo=slo_of(SMALL),
            backend=context.backend,
            seed=context.seed,
            step="blitzscale",
        )
        served.append(Served(SMALL, name, run))
    tables = told(served)
    over = tables["totals"].filter(system=OVER).row(0, named=True)["gpu_allocated_s"]
    totals = tables["totals"].with_columns(held=pl.col("gpu_allocated_s") / over, active=pl.col("gpu_active_s") / over)
    rows = {row["system"]: row for row in totals.to_dicts()}
    known = [(f"{what} P99, {name}", "", rows[name][f"{what} P99"], "s") for what in (TTFT, TBT) for name in SYSTEMS]
    known.append((RATIO, "Llama2-7B, BurstGPT", rows[BLITZ][f"{TTFT} P99"] / rows[AVERAGE][f"{TTFT} P99"], "1"))
    return tables | {"totals": totals, "headline": headline(known)}
