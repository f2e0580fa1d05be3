"""All schedules over the number of nodes, with the bound that none can beat."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.realruns import real_seconds
from workbench.catalogue.spec import Agree, experiment
from workbench.errors import UserError
from workbench.transfer.model import Hockney, arrival_steps, run_times, uniform_network
from workbench.transfer.policy import SCHEDULES, lower_bound, make_schedule
from workbench.transfer.simulated import simulate

WHOLE = ("binomial_pipeline", "chain", "faasnet_tree", "binary_tree", "binomial_tree", "sequential")
"""Schedules of whole blocks from one copy: those that the lower bound is about."""
NAMES = (*WHOLE, "multi_chain", "ring_broadcast", "k_way")
LABELS = {name: SCHEDULES[name].label for name in NAMES}
SLICES = 8
BLOCKS = (1, 2, 4, 8, 16, 32, 64)
SIMULATED = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
REAL = {"full": (4, 8), "quick": (4,)}
STEP_S = 0.03
BOUND = "lower bound m - 1 + ⌈log2 n⌉ of one copy"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    m = parameters["blocks"]
    table = tables["steps"].filter(pl.col("backend") == tables["steps"]["backend"][0])
    n = min(table["nodes"].unique(), key=lambda size: abs(size - parameters["nodes"]))  # a real run has few sizes
    table = table.filter(pl.col("nodes") == n).sort("steps")
    one = table.filter(pl.col("schedule").is_in([LABELS[name] for name in WHOLE]))
    if not len(one):
        return f"{m} blocks to {n} nodes: {table['steps'][0]:.4g} steps by {table['schedule'][0]}."
    best, worst = one.row(0, named=True), one.row(-1, named=True)
    return (
        f"{m} blocks to {n} nodes from one copy: at least {lower_bound(n, m)} steps; {best['schedule']} takes "
        f"{best['steps']:.4g}, {worst['schedule']} {worst['steps']:.4g}."
    )


@experiment(
    "theory/multicast",
    title="Every schedule, every size",
    question="How many steps does each schedule take to bring m blocks to n nodes, and how near is that to the bound?",
    backends=("analytic", "compiled", "simpy", "torch"),
    seconds={"analytic": 0.05, "compiled": 0.5, "simpy": 8.0, "torch": 25},
    draw="theory.multicast",
    panels=("steps", "blocks", "spread"),
    say=_say,
    agrees=(
        Agree(
            "steps until the last node is complete",
            "steps",
            ("schedule", "nodes"),
            "steps",
            {
                ("analytic", "compiled"): (-1e-9, 1e-9),
                ("analytic", "simpy"): (-1e-9, 1e-9),
                ("compiled", "simpy"): (-1e-9, 1e-9),
                ("analytic", "torch"): (-0.01, 0.10),
            },
        ),
    ),
)
def multicast(
    context: Context,
    *,
    nodes: Annotated[int, Par("Nodes, source included", low=2, high=64, source="the range of the questions asked")] = 8,
    blocks: Annotated[int, Par("Blocks", low=1, high=64, source="16 in the artifact of λScale")] = 16,
    schedules: Annotated[
        tuple[str, ...], Par("Schedules", choices=tuple(LABELS.values()), source="all of them")
    ] = tuple(LABELS.values()),
    copies: Annotated[
        int, Par("k sources: copies at the start", low=2, high=8, source="2, 4 in the questions asked of λScale")
    ] = 2,
    chains: Annotated[
        int, Par("Several chains: how many", low=2, high=8, source="2 in BlitzScale's cluster tests")
    ] = 2,
) -> dict[str, pl.DataFrame]:
    """Steps (dataflow) for n = 2 to 64, steps by number of blocks and the spread over the nodes for one n.

    A step is the time of one block on one link. A ring's slices are eighths of a block, so its steps are in eighths.
    """
    names = [name for name, label in LABELS.items() if label in schedules]
    options = {"k_way": {"sources": copies}, "multi_chain": {"chains": chains}, "ring_broadcast": {"slices": SLICES}}
    smallest = {"k_way": 2 * copies, "multi_chain": chains + 1}
    rows = []
    for name in names:
        for n in _sizes(context, nodes):
            if n < smallest.get(name, 2) or (context.backend == "torch" and name == "ring_broadcast"):
                continue  # too few nodes for it, or slices too fine for paced processes
            context.tell(f"{LABELS[name]}, {n} nodes")
            steps = _steps(context, name, n, blocks, options.get(name, {}))
            rows.append({"schedule": LABELS[name], "nodes": n, "steps": steps})
    if not rows:
        raise UserError(f"theory/multicast: {', '.join(schedules)} cannot be run by {context.backend}; choose others.")
    table = pl.DataFrame(rows)
    tables = {"steps": table, "headline": headline(curve_rows(table, "schedule", "nodes", "steps", "steps"))}
    if context.backend != "analytic":
        return tables
    named = {name: options.get(name, {}) for name in names if nodes >= smallest.get(name, 2)}
    bound = [{"nodes": n, "steps": lower_bound(n, blocks)} for n in range(2, 65)]
    return {**tables, "bound": pl.DataFrame(bound), **_one_size(named, nodes, blocks)}


def _one_size(named: Mapping[str, Mapping[str, int]], nodes: int, blocks: int) -> dict[str, pl.DataFrame]:
    """For one number of nodes: steps by number of blocks, and how many nodes are complete after how many steps."""
    by_blocks, spread = [], []
    for name, options in named.items():
        for count in sorted({*BLOCKS, blocks}):
            steps = float(arrival_steps(name, nodes, count, **options).max()) / options.get("slices", 1)
            by_blocks.append({"schedule": LABELS[name], "blocks": count, "steps": steps})
        complete = np.sort(arrival_steps(name, nodes, blocks, **options).max(axis=1)) / options.get("slices", 1)
        spread += [
            {"schedule": LABELS[name], "complete_nodes": rank, "steps": float(value)}
            for rank, value in enumerate(complete.tolist(), start=1)
        ]
    by_blocks += [
        {"schedule": BOUND, "blocks": count, "steps": float(lower_bound(nodes, count))}
        for count in sorted({*BLOCKS, blocks})
    ]
    schema = {"schedule": pl.String, "complete_nodes": pl.Int64, "steps": pl.Float64}
    return {"by_blocks": pl.DataFrame(by_blocks), "spread": pl.DataFrame(spread, schema=schema)}


def _sizes(context: Context, nodes: int) -> list[int]:
    if context.backend == "torch":
        return list(REAL[context.mode])
    if context.backend == "simpy":
        sizes = SIMULATED if context.mode == "full" else SIMULATED[:7]
        return sorted({*sizes, nodes})
    return list(range(2, 65))


def _steps(context: Context, name: str, nodes: int, blocks: int, options: Mapping[str, int]) -> float:
    parts = options.get("slices", 1)
    if context.backend == "analytic":
        return float(arrival_steps(name, nodes, blocks, **options).max()) / parts
    schedule = make_schedule(name, nodes, blocks, **options)
    if context.backend == "compiled":
        return float(run_times(schedule, 1.0 / parts).held_s.max())
    if context.backend == "simpy":
        return simulate(schedule, uniform_network(nodes, 1.0), 1.0 / parts).finish_s
    cost = Hockney(bytes_per_s=1 / STEP_S)
    return real_seconds(context, schedule, blocks, cost) / STEP_S
