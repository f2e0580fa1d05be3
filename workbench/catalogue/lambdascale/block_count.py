"""Ablation: into how many blocks to cut a model, and where the chain beats the binomial pipeline."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.links import Rate, link_cost
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.realruns import real_seconds
from workbench.catalogue.spec import Agree, experiment
from workbench.transfer.model import Hockney, multicast_s, optimal_blocks, uniform_network
from workbench.transfer.policy import SCHEDULES, make_schedule
from workbench.transfer.simulated import simulate

NAMES = ("binomial_pipeline", "chain", "faasnet_tree", "binomial_tree", "sequential")
BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
SIMULATED = (1, 2, 4, 8, 16, 32, 64)
REAL = (4, 8, 16, 32)
KNOWN = (("13B", "llama-2-13b", 8), ("7B", "llama-2-7b", 8), ("13B", "llama-2-13b", 12))

CURVE = "time against number of blocks, FaaScale 13B, 8 nodes"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    found = tables["best"] if "best" in tables else tables["curve"].sort("complete_s").unique("schedule", keep="first")
    best = {row["schedule"]: row for row in found.to_dicts()}
    pipeline, chain = best["binomial_pipeline"], best["chain"]
    behind = chain["complete_s"] / pipeline["complete_s"] - 1
    last = f"the chain is {behind:.1%} behind" if behind > 5e-4 else "the two tie"
    return (
        f"{name_of(parameters['model'])} to {parameters['nodes']} nodes is fastest in {pipeline['blocks']} blocks by "
        f"binomial pipeline ({pipeline['complete_s']:.3g} s) and in {chain['blocks']} by chain "
        f"({chain['complete_s']:.3g} s); {last}."
    )


@experiment(
    "lambdascale/block-count",
    title="How many blocks? (ablation)",
    question="Few blocks leave links idle, many pay overhead often: where is the elbow, and when is a chain as good?",
    backends=("analytic", "simpy", "torch"),
    seconds={"analytic": 0.02, "simpy": 2.5, "torch": 30},
    draw="curves.block_count",
    say=_say,
    agrees=(
        Agree(
            "time to the last node",
            "curve",
            ("schedule", "blocks"),
            "complete_s",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.01, 0.10)},
        ),
    ),
)
def block_count(
    context: Context,
    *,
    cluster: Annotated[
        str,
        Par("Cluster", profile="cluster", status="published", source="MLSys'26 paper §7.1; rate and overhead fitted"),
    ] = "lambdascale-testbed1",
    model: Annotated[str, Par("Model", profile="model", free=True, source="one of the paper's three")] = "llama-2-13b",
    nodes: Annotated[int, Par("Nodes, source included", low=2, high=256, free=True, source="8 in the records")] = 8,
    rate: Rate = "achievable",
    overhead_factor: Annotated[
        float, Par("Overhead per step, times the cluster's", low=0.001, high=100, log=True, free=True)
    ] = 1.0,
    bandwidth_factor: Annotated[
        float, Par("Bandwidth, times the cluster's", low=0.1, high=10, log=True, free=True)
    ] = 1.0,
) -> dict[str, pl.DataFrame]:
    """Seconds against the number of blocks for five schedules, each with its best number of blocks."""
    fitted = link_cost(context, context.cluster(cluster), rate, nodes)
    cost = Hockney(alpha_s=fitted.alpha_s * overhead_factor, bytes_per_s=fitted.bytes_per_s * bandwidth_factor)
    size = context.model(model).weight_bytes
    rows = []
    for name in NAMES if context.backend != "torch" else NAMES[:2]:
        for blocks in _counts(context):
            seconds = _seconds(context, name, nodes, blocks, size, cost)
            rows.append({"schedule": name, "blocks": blocks, "complete_s": seconds})
    table = pl.DataFrame(rows)
    labelled = table.with_columns(pl.col("schedule").replace_strict({name: SCHEDULES[name].label for name in NAMES}))
    known = curve_rows(labelled, "schedule", "blocks", "complete_s", "s")
    pipeline = table.filter(pl.col("schedule") == "binomial_pipeline").sort("complete_s")
    optimum = optimal_blocks("binomial_pipeline", nodes, size, cost)
    ratio = pipeline["blocks"][0] / optimum.real if 0 < optimum.real < math.inf else math.nan
    known.append(("best number of blocks found over the closed-form optimum [acceptance]", "", ratio, "1"))
    if context.backend != "analytic":
        return {"curve": table, "headline": headline(known)}
    best = pl.DataFrame([{"schedule": name, **_best(name, nodes, size, cost)} for name in NAMES])
    return {"curve": table, "best": best, "headline": headline([*_known(context, fitted), *known])}


def _best(name: str, nodes: int, size: int, cost: Hockney) -> dict[str, float]:
    found = optimal_blocks(name, nodes, size, cost)
    return {"blocks": found.integer, "blocks_real": found.real, "complete_s": found.seconds}


def _counts(context: Context) -> tuple[int, ...]:
    counts = {"analytic": BLOCKS, "simpy": SIMULATED, "torch": REAL}[context.backend]
    return counts[:2] if context.backend == "torch" and context.mode == "quick" else counts


def _seconds(context: Context, name: str, nodes: int, blocks: int, size: int, cost: Hockney) -> float:
    if context.backend == "analytic":
        return multicast_s(name, nodes, blocks, size, cost)
    context.tell(f"{SCHEDULES[name].label}, {blocks} blocks")
    schedule = make_schedule(name, nodes, blocks)
    if context.backend == "torch":
        return real_seconds(context, schedule, size, cost)
    return simulate(schedule, uniform_network(nodes, cost.bytes_per_s, cost.alpha_s), size / blocks).finish_s


def _known(context: Context, cost: Hockney) -> list[tuple[str, Any, float, str]]:
    size = context.model("llama-2-13b").weight_bytes
    rows: list[tuple[str, Any, float, str]] = [
        (
            CURVE,
            m,
            multicast_s("binomial_pipeline", 8, m, size, cost),
            "s",
        )
        for m in (1, 2, 4, 8, 16, 32, 64, 128)
    ]
    for label, name, nodes in KNOWN:
        found = optimal_blocks("binomial_pipeline", nodes, context.model(name).weight_bytes, cost)
        rows.append((f"best number of blocks, FaaScale {label}", f"{nodes} nodes", found.integer, "1"))
    return rows
