"""Ablation: what rotating the block order buys, in steps and in seconds, for several sub-group counts."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.lambdascale.fig5 import MILESTONES, ORDERS, arrivals
from workbench.catalogue.links import Rate, link_cost
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Match, experiment
from workbench.transfer.model import milestones_of

TABLE = ((8, 1, 16), (8, 2, 4), (8, 2, 16), (8, 4, 16), (12, 1, 16), (12, 2, 16), (12, 3, 16), (12, 4, 16), (32, 8, 16))
"""Nodes, sources and blocks of the table of milestones that published points refer to."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["milestones"].filter(
        (pl.col("milestone") == MILESTONES[0]) & (pl.col("order") == parameters["order"])
    )
    first, best = table.row(0, named=True), table.sort("time_s", "sources").row(0, named=True)
    return (
        f"In {parameters['order']} order the destinations jointly hold the model after {first['time_s']:.3g} s with "
        f"{first['sources']} copy, and soonest, after {best['time_s']:.3g} s, with {best['sources']}."
    )


@experiment(
    "lambdascale/reorder",
    title="What rotated block orders buy (ablation)",
    question="How much sooner can the destinations serve when each sub-group sends another part of the model first?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.1, "simpy": 2.0},
    draw="curves.reorder",
    say=_say,
    matches=(Match(tolerance=0.0),),
    agrees=(
        Agree(
            "steps to each milestone",
            "milestones",
            ("order", "sources", "milestone"),
            "steps",
            {("analytic", "simpy"): (-1e-9, 1e-9)},
        ),
    ),
)
def reorder(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster", profile="cluster", status="published", source="MLSys'26 paper §7.1, Testbed1")
    ] = "lambdascale-testbed1",
    model: Annotated[
        str, Par("Model", profile="model", free=True, status="published", source="MLSys'26 paper §7.1")
    ] = ("llama-2-13b"),
    nodes: Annotated[
        int, Par("Nodes, sources included", low=2, high=64, free=True, status="published", source="MLSys'26 paper §7.1")
    ] = 12,
    blocks: Annotated[
        int, Par("Blocks", low=1, high=64, free=True, status="published", source="artifact: 16 transfer blocks")
    ] = 16,
    order: Annotated[str, Par("Order to describe", choices=ORDERS, free=True)] = "contiguous",
    rate: Rate = "achievable",
) -> dict[str, pl.DataFrame]:
    """Steps and seconds until the milestones for k = 1, 2, 4, … sources and all four orders."""
    step_s = link_cost(context, context.cluster(cluster), rate, nodes).travel_s(
        context.model(model).weight_bytes / blocks
    )
    context.cite("seconds of one step", step_s, "s", "computed", "overhead + model bytes / (blocks x link rate)")
    # A copy without a destination sends to nobody: k is at most half of the nodes, as in the artifact.
    sources = [k for k in (1, 2, 3, 4, 6, 8, 12, 16) if 2 * k <= nodes] or [1]
    rows = []
    for name in ORDERS:
        for k in sources:
            context.check()
            steps = _milestones(context, nodes, blocks, k, name)
            rows += [
                {"order": name, "sources": k, "milestone": label, "steps": value, "time_s": value * step_s}
                for label, value in zip(MILESTONES, steps, strict=True)
            ]
    table = pl.DataFrame(rows)
    joint = curve_rows(table.filter(pl.col("milestone") == MILESTONES[0]), "order", "sources", "time_s", "s")
    return {"milestones": table, "headline": pl.concat([_known(context.backend), headline(joint)])}


def _milestones(context: Context, nodes: int, blocks: int, sources: int, order: str) -> tuple[int, int, int]:
    steps = np.rint(arrivals(context, nodes, blocks, sources, order)).astype(np.int64)
    found = milestones_of(steps, sources)
    return found.joint_copy, found.one_per_group, found.complete


@functools.cache
def _known(backend: str) -> pl.DataFrame:
    """The published table's rows, which no parameter touches."""
    context, rows = Context(backend), []
    for nodes, sources, blocks in TABLE:
        x = f"N={nodes}, k={sources}, b={blocks}"
        for label, order in (("rotated", "contiguous"), ("naive", "naive")):
            joint, pipeline, complete = _milestones(context, nodes, blocks, sources, order)
            rows.append((f"{label} order: destinations jointly hold all blocks", x, joint, "steps"))
            rows.append((f"{label} order: one node per sub-group holds all blocks jointly", x, pipeline, "steps"))
            if order == "contiguous":
                rows.append(("every node complete", x, complete, "steps"))
    return headline(rows)
