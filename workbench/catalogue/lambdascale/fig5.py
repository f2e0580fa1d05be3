"""Figure 5: two complete copies scale to eight nodes, and which block arrives where in which step."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.operating.choices import counted
from workbench.scaling.policy import Pipeline, form_planned, form_searched, group_pipelines, halving_lengths
from workbench.transfer.model import arrival_steps, milestones_of, uniform_network
from workbench.transfer.policy import make_schedule, sub_groups
from workbench.transfer.simulated import simulate

ORDERS = ("contiguous", "strided", "half", "naive")
MILESTONES = ("destinations jointly hold all blocks", "first pipeline possible", "every node complete")
_PAPER = "MLSys'26 paper §4.2, Fig 5"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    rows = tables["milestones"].filter(pl.col("milestone") == MILESTONES[1])
    steps = dict(zip(rows["order"], rows["steps"], strict=True))
    chosen = parameters["order"]
    copies = min(parameters["sources"], max(1, parameters["nodes"] // 2))
    text = f"With {copies} {'copy' if copies == 1 else 'copies'} and {counted(parameters['blocks'], 'block')} the first"
    text += f" pipeline can form after {counted(steps[chosen], 'step')} in {chosen} order"
    return f"{text}, after {steps['naive']} in naive order." if chosen != "naive" else f"{text}."


@experiment(
    "lambdascale/fig5",
    title="Which block lands where: scaling from k copies to N nodes",
    question="After how many steps can nodes that hold complementary blocks start to serve together?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.01, "simpy": 0.1},
    draw="blocks.landing",
    panels=("blocks", "milestones", "pipelines"),
    say=_say,
    agrees=(
        Agree(
            "arrival of each block (steps)",
            "arrivals",
            ("node", "block"),
            "step",
            {("analytic", "simpy"): (-1e-9, 1e-9)},
        ),
    ),
)
def fig5(
    context: Context,
    *,
    nodes: Annotated[int, Par("Nodes, sources included", low=2, high=64, status="published", source=_PAPER)] = 8,
    sources: Annotated[int, Par("Complete copies at the start", low=1, high=16, status="published", source=_PAPER)] = 2,
    blocks: Annotated[int, Par("Blocks", low=1, high=32, status="published", source=_PAPER)] = 4,
    order: Annotated[str, Par("Order of the blocks", choices=ORDERS, status="published", source=_PAPER)] = "contiguous",
    step: Annotated[int, Par("Show what is held after step", low=0, high=40, free=True, play=True)] = 3,
) -> dict[str, pl.DataFrame]:
    """Arrival step of every block at every node, three milestones for all four orders, and the pipelines that form.

    Pipelines are those that Algorithm 2 plans, one node of each sub-group, and those of the artifact's plan of halved
    lengths, found among whoever has blocks; both in the order that is drawn.
    """  # fmt: skip
    if sources > nodes // 2:
        why = "each copy needs a destination to send to: k = min(copies, destinations), as in the artifact"
        sources = context.cite("copies used", max(1, nodes // 2), "1", "published", why)
    landed = {name: arrivals(context, nodes, blocks, sources, name) for name in ORDERS}
    groups = sub_groups(nodes, sources)
    group_of = {node: group for group, members in enumerate(groups) for node in members}
    node, block = (grid.ravel() for grid in np.indices((nodes, blocks)))
    table = pl.DataFrame(
        {
            "node": node,
            "block": block,
            "group": [group_of[name] for name in node.tolist()],
            "step": landed[order].ravel().astype(float),
            "held": landed[order].ravel() <= step + 1e-9,
        }
    )
    found = {name: milestones_of(np.rint(steps).astype(np.int64), sources) for name, steps in landed.items()}
    milestones = pl.DataFrame(
        [
            {"order": name, "milestone": milestone, "steps": value}
            for name, steps in found.items()
            for milestone, value in zip(
                MILESTONES, (steps.joint_copy, steps.one_per_group, steps.complete), strict=True
            )
        ]
    )
    found_pipelines = _pipelines(np.rint(landed[order]).astype(np.int64), groups, sources)
    x = f"{sources} to {nodes} nodes, {blocks} blocks"
    rows = []
    for label, name in (("rotated", "contiguous"), ("naive", "naive")):
        first = f"step after which the first pipelines are possible, {label} order"
        joint = f"step after which the destinations jointly hold all blocks, {label} order"
        rows += [(first, x, found[name].one_per_group, "steps"), (joint, x, found[name].joint_copy, "steps")]
    known = headline([*rows, *curve_rows(milestones, "order", "milestone", "steps", "steps")])
    return {"arrivals": table, "milestones": milestones, "pipelines": found_pipelines, "headline": known}


PLANNED, SEARCHED = "one node of each group (Algorithm 2)", "halved lengths (artifact)"


def _pipelines(steps: np.ndarray, groups: list[list[int]], sources: int) -> pl.DataFrame:
    """Every pipeline of both plans: who is in it, and after which step it can serve."""
    planned = form_planned(steps, group_pipelines([members[1:] for members in groups]))
    searched = form_searched(steps, sources, halving_lengths(len(steps) - sources, steps.shape[1]))
    rows = [
        {"plan": plan, "pipeline": number, "nodes": _names(one), "length": one.in_flight, "steps": float(one.forms)}
        for plan, found in ((PLANNED, planned), (SEARCHED, searched))
        for number, one in enumerate(found)
    ]
    return pl.DataFrame(rows)


def _names(pipeline: Pipeline) -> str:
    return ", ".join(map(str, sorted(pipeline.nodes)))


def arrivals(context: Context, nodes: int, blocks: int, sources: int, order: str) -> np.ndarray:
    """Steps after which each node holds each block, float or int (nodes, blocks), by the context's backend."""
    if context.backend == "analytic":
        return arrival_steps("k_way", nodes, blocks, sources=sources, order=order)
    schedule = make_schedule("k_way", nodes, blocks, sources=sources, order=order)
    return simulate(schedule, uniform_network(nodes, 1.0), block_bytes=1.0).arrival_s
