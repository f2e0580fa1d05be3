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
from workbench.transfer.model import Hockney, arrival_steps, run_times, uniform_network
from workbench.transfer.policy import SCHEDULES, lower_bound, make_schedule
from workbench.transfer.simulated import simulate

NAMES = ("binomial_pipeline", "chain", "faasnet_tree", "binary_tree", "binomial_tree", "sequential")
LABELS = {name: SCHEDULES[name].label for name in NAMES}
SIMULATED = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
REAL = {"full": (4, 8), "quick": (4,)}
STEP_S = 0.03


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table, n, m = tables["steps"], parameters["nodes"], parameters["blocks"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("nodes") == n)).sort("steps")
    best, worst = table.row(0, named=True), table.row(-1, named=True)
    bound = lower_bound(n, m)
    return (
        f"{m} blocks to {n} nodes: at least {bound} steps; {best['schedule']} takes {best['steps']:.0f}, "
        f"{worst['schedule']} {worst['steps']:.0f}."
    )


@experiment(
    "theory/multicast",
    title="Every schedule, every size",
    question="How many steps does each schedule take to bring m blocks to n nodes, and how near is that to the bound?",
    backends=("analytic", "compiled", "simpy", "torch"),
    seconds={"analytic": 0.05, "compiled": 0.5, "simpy": 8.0, "torch": 25},
    draw="theory.multicast",
    panels=("steps", "spread"),
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
) -> dict[str, pl.DataFrame]:
    """Steps (dataflow) for n = 2 to 64, and how many nodes are complete after how many steps for one n."""
    names = [name for name, label in LABELS.items() if label in schedules]
    rows = []
    for name in names:
        for n in _sizes(context, nodes):
            context.tell(f"{LABELS[name]}, {n} nodes")
            rows.append({"schedule": LABELS[name], "nodes": n, "steps": _steps(context, name, n, blocks)})
    spread = []
    for name in names if context.backend == "analytic" else ():
        complete = np.sort(arrival_steps(name, nodes, blocks).max(axis=1))
        spread += [
            {"schedule": LABELS[name], "complete_nodes": rank, "steps": float(value)}
            for rank, value in enumerate(complete.tolist(), start=1)
        ]
    bound = [{"nodes": n, "steps": lower_bound(n, blocks)} for n in range(2, 65)]
    table = pl.DataFrame(rows)
    known = headline(curve_rows(table, "schedule", "nodes", "steps", "steps"))
    tables = {"steps": table, "bound": pl.DataFrame(bound), "headline": known}
    return {**tables, "spread": pl.DataFrame(spread)} if spread else tables


def _sizes(context: Context, nodes: int) -> list[int]:
    if context.backend == "torch":
        return list(REAL[context.mode])
    if context.backend == "simpy":
        sizes = SIMULATED if context.mode == "full" else SIMULATED[:7]
        return sorted({*sizes, nodes})
    return list(range(2, 65))


def _steps(context: Context, name: str, nodes: int, blocks: int) -> float:
    if context.backend == "analytic":
        return float(arrival_steps(name, nodes, blocks).max())
    schedule = make_schedule(name, nodes, blocks)
    if context.backend == "compiled":
        return float(run_times(schedule, 1.0).held_s.max())
    if context.backend == "simpy":
        return simulate(schedule, uniform_network(nodes, 1.0), 1.0).finish_s
    cost = Hockney(bytes_per_s=1 / STEP_S)
    return real_seconds(context, schedule, blocks, cost) / STEP_S
