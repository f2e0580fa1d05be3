"""One schedule in full: who sends what to whom in each step, and how many links are busy."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.catalogue.theory.multicast import WHOLE
from workbench.transfer.model import arrival_steps, uniform_network
from workbench.transfer.policy import SCHEDULES, lower_bound, make_schedule, shares_vertex
from workbench.transfer.simulated import simulate

LABELS = {name: SCHEDULES[name].label for name in WHOLE}


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    n, m = parameters["nodes"], parameters["blocks"]
    table = tables["arrivals"].filter(pl.col("backend") == tables["arrivals"]["backend"][0])
    complete = table.group_by("node").agg(pl.col("step").max()).sort("node")["step"].to_list()
    last, bound = max(complete), lower_bound(n, m)
    soonest = min(complete[1:])
    first = "all are complete in the last one" if soonest == last else f"the first is complete after {soonest:g}"
    over = f"{last - bound:g} above the bound" if last > bound else "which no schedule can beat"
    return f"{parameters['schedule'].capitalize()}: {m} blocks reach all {n} nodes in {last:g} steps, {over}; {first}."


@experiment(
    "theory/schedule",
    title="One schedule, step by step",
    question="Why ⌈log2 n⌉ + m - 1? Which block reaches which node in which step, and how many links work at once?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.05, "simpy": 1.0},
    draw="blocks.schedule",
    panels=("blocks", "links", "completion"),
    say=_say,
    agrees=(
        Agree("arrival of each block", "arrivals", ("node", "block"), "step", {("analytic", "simpy"): (-1e-9, 1e-9)}),
    ),
)
def schedule(
    context: Context,
    *,
    schedule: Annotated[str, Par("Schedule", choices=tuple(LABELS.values()))] = LABELS["binomial_pipeline"],
    nodes: Annotated[int, Par("Nodes, source included", low=2, high=64)] = 8,
    blocks: Annotated[int, Par("Blocks", low=1, high=32)] = 8,
    step: Annotated[int, Par("Show what is held after step", low=0, high=80, free=True, play=True)] = 6,
) -> dict[str, pl.DataFrame]:
    """Arrival step of every block at every node, busy links per step, and the step each node is complete.

    A vertex of the hypercube that two nodes share (n not a power of two) is marked as doubled.
    """
    name = next(key for key, label in LABELS.items() if label == schedule)
    if context.backend == "analytic":
        arrival = arrival_steps(name, nodes, blocks).astype(float)
    else:
        plan = make_schedule(name, nodes, blocks)
        arrival = simulate(plan, uniform_network(nodes, 1.0), 1.0).arrival_s
    node, block = (grid.ravel() for grid in np.indices(arrival.shape))
    arrivals = pl.DataFrame(
        {"node": node, "block": block, "step": arrival.ravel(), "held": arrival.ravel() <= step + 1e-9}
    )
    numbers, counts = np.unique(arrival[arrival > 0], return_counts=True)
    links = pl.DataFrame({"step": numbers, "busy_links": counts, "bound": np.full(len(numbers), nodes - 1)})
    doubled = shares_vertex(nodes) if name == "binomial_pipeline" else np.zeros(nodes, dtype=bool)
    complete = pl.DataFrame({"node": np.arange(nodes), "step": arrival.max(axis=1), "doubled": doubled})
    known = headline([("complete", row["node"], row["step"], "steps") for row in complete.to_dicts()])
    return {"arrivals": arrivals, "links": links, "completion": complete, "headline": known}
