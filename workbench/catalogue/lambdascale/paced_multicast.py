"""All schedules among real processes over paced links, beside formula and simulation."""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.realruns import real_seconds
from workbench.catalogue.spec import Agree, experiment
from workbench.transfer.model import Hockney, completion, uniform_network
from workbench.transfer.policy import SCHEDULES, make_schedule
from workbench.transfer.simulated import simulate

NAMES = ("binomial_pipeline", "chain", "faasnet_tree", "binary_tree", "binomial_tree", "sequential")
MEGABYTE = 1e6
TIE = 0.01
"""Schedules whose predicted times lie closer than this are not put in an order."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["times"]
    wide = table.filter(pl.col("backend") != "simpy").pivot("backend", index="schedule", values="complete_s")
    real = next((name for name in ("torch", "recorded") if name in wide.columns), None)
    first = table.sort("complete_s")["schedule"][0]
    text = f"Among {parameters['nodes']} nodes the {first} is first"
    if real is None or "analytic" not in wide.columns:
        return f"{text}."
    both = wide.drop_nulls()
    late = (both[real] / both["analytic"] - 1).max()
    pairs = list(itertools.pairwise(both.sort("analytic").select("analytic", real).rows()))
    kept = all(after[1] > before[1] for before, after in pairs if after[0] > before[0] * (1 + TIE))
    order = "in the predicted order" if kept else "not in the predicted order"
    return f"{text}; real processes finish {order}, at most {late:.1%} later than the formula."


@experiment(
    "lambdascale/paced-multicast",
    title="Schedules among real processes",
    question="Do real processes that really move the bytes take the time, and keep the order, that the formula says?",
    backends=("analytic", "simpy", "torch"),
    seconds={"analytic": 0.02, "simpy": 0.3, "torch": 15},
    draw="bars.paced",
    say=_say,
    agrees=(
        Agree(
            "time to the last node",
            "times",
            ("schedule",),
            "complete_s",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.01, 0.10)},
        ),
    ),
)
def paced_multicast(
    context: Context,
    *,
    nodes: Annotated[int, Par("Processes, source included", low=2, high=8, free=True)] = 4,
    blocks: Annotated[int, Par("Blocks", low=1, high=32, free=True)] = 16,
    message_mb: Annotated[float, Par("Message", "MB", low=1, high=256, step=1, free=True)] = 24.0,
    link_mb_per_s: Annotated[float, Par("Link", "MB/s", low=5, high=200, step=5, free=True)] = 50.0,
    overhead_s: Annotated[float, Par("Overhead per block", "s", low=0, high=0.1, step=0.001, free=True)] = 0.0,
) -> dict[str, pl.DataFrame]:
    """Seconds until the last process holds the message, for six schedules, on the real clock."""
    cost = Hockney(alpha_s=overhead_s, bytes_per_s=link_mb_per_s * MEGABYTE)
    size = message_mb * MEGABYTE
    names = NAMES[:3] if context.backend == "torch" and context.mode == "quick" else NAMES
    rows = []
    for name in names:
        if context.backend == "analytic":
            seconds = float(completion(name, nodes, blocks, size, cost)["complete_s"].max())
        elif context.backend == "simpy":
            network = uniform_network(nodes, cost.bytes_per_s, cost.alpha_s)
            seconds = simulate(make_schedule(name, nodes, blocks), network, size / blocks).finish_s
        else:
            seconds = real_seconds(context, make_schedule(name, nodes, blocks), size, cost)
        rows.append({"schedule": SCHEDULES[name].label, "complete_s": seconds})
    table = pl.DataFrame(rows)
    known = [(row["schedule"], "", row["complete_s"], "s") for row in rows]
    if context.backend == "torch":
        formula = {
            SCHEDULES[name].label: float(completion(name, nodes, blocks, size, cost)["complete_s"].max())
            for name in names
        }
        ratios = [row["complete_s"] / formula[row["schedule"]] for row in rows]
        worst = max(ratios, key=lambda ratio: abs(ratio - 1))
        label = "wall time over the formula (blocks and hops times step time)"
        known.append((label, "chain, tree, pipeline, sequential", worst, "1"))
    return {"times": table, "headline": headline(known)}
