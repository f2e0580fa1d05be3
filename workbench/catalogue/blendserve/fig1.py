"""Figure 1: naive against blended batches, on a handful of requests of two kinds."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.kernels.layout import Order
from workbench.blending.model.bounds import bounds
from workbench.blending.model.costs import Costs, Engine, seconds_of
from workbench.blending.model.density import Density
from workbench.blending.model.estimating import estimate
from workbench.blending.model.ordering import plain, units_of
from workbench.blending.model.prompts import pool_of_tokens
from workbench.blending.model.running import serve
from workbench.blending.model.transforming import NONE, transform
from workbench.blending.model.tree import tree_of
from workbench.blending.simulated import simulate_serving
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment

NAIVE, BLENDED = "one kind after the other", "blended"
COSTS = Costs(
    flops_per_token=1.0, pair_flops=0.0, kv_bytes_per_token=1.0, weight_bytes=1.0, flops_per_s=128.0,
    memory_bytes_per_s=400.0, pool_bytes=4096.0,
)  # fmt: skip
"""An engine of round numbers: a tile of 128 tokens takes a second, the KV of 400 tokens is read in one."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["totals"].filter(pl.col("backend") == tables["totals"]["backend"][0])
    seconds = dict(table.select("order", "seconds").iter_rows())
    if NAIVE not in seconds:
        return f"No order takes less than {seconds['optimum']:.1f} s."
    return (
        f"{NAIVE.capitalize()} takes {seconds[NAIVE]:.1f} s, blended {seconds[BLENDED]:.1f} s, a gain of "
        f"{seconds[NAIVE] / seconds[BLENDED]:.2f}."
    )


@experiment(
    "blendserve/fig1",
    title="Naive and blended batches",
    question="Two kinds of requests, one that computes and one that reads memory: what does mixing them buy?",
    backends=("compiled", "simpy", "analytic"),
    seconds={"compiled": 0.1, "simpy": 1, "analytic": 0.05},
    draw="blending.toy",
    say=_say,
    agrees=(
        Agree("time of each order", "totals", ("order",), "seconds", {("compiled", "simpy"): (0.0, 0.0)}),
    ),
)  # fmt: skip
def fig1(
    context: Context,
    *,
    short: Annotated[int, Par("Requests that compute", low=4, high=200, free=True, source="chosen")] = 40,
    long: Annotated[int, Par("Requests that read memory", low=1, high=40, free=True, source="chosen")] = 8,
    short_output: Annotated[int, Par("Their output", "tokens", low=1, high=50, free=True, source="chosen")] = 2,
    long_output: Annotated[
        int, Par("Output of the others", "tokens", low=10, high=400, step=10, free=True, source="chosen")
    ] = 60,
    memory_slope: Annotated[
        float, Par("a: memory time added where compute is longer", low=0, high=1, step=0.05, free=True,
                   source="chosen: a drawing of perfect overlap")
    ] = 0.0,
    compute_slope: Annotated[
        float, Par("b: compute time added where memory is longer", low=0, high=1, step=0.05, free=True,
                   source="chosen: a drawing of perfect overlap")
    ] = 0.0,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Steps of both orders on an engine of round numbers; the formula gives the time that no order can beat."""
    engine = Engine(costs=COSTS, memory_slope=memory_slope, compute_slope=compute_slope)
    prompts = [[index] * 100 for index in range(short)] + [[short + index] * 20 for index in range(long)]
    pool = pool_of_tokens(prompts, [short_output] * short + [long_output] * long)
    tree = tree_of(pool)
    if context.backend == "analytic":
        best = bounds(pool, tree, engine).practical_s
        return {
            "totals": pl.DataFrame({"order": ["optimum"], "seconds": [best]}),
            "headline": headline([("seconds that no order can beat", "", best, "s")]),
        }
    known = estimate(pool, tree, "oracle")
    about = Density(length_biased=True)
    dense = units_of(transform(pool, tree, known, COSTS, NONE).order, pool, tree, known, COSTS, about)
    steps, totals = [], []
    for name, order, scan in ((NAIVE, plain(np.arange(pool.size)), "single"), (BLENDED, dense, "feedback")):
        log, finish_s = _run(context, pool, tree, known, order, engine, scan)
        steps.append(_steps(name, log, engine))
        totals.append({"order": name, "seconds": float(finish_s.max())})
    known_rows = [("seconds", row["order"], row["seconds"], "s") for row in totals]
    return {"steps": pl.concat(steps), "totals": pl.DataFrame(totals), "headline": headline(known_rows)}


def _run(context: Context, pool, tree, known, order: Order, engine: Engine, scan: str) -> tuple[np.ndarray, np.ndarray]:
    """The log of steps, and when each request is done."""
    if context.backend == "simpy":
        found = simulate_serving(pool, tree, known, order, COSTS, engine, scan, batch=512)
        return found.run.log, found.finish_s
    run = serve(pool, tree, known, order, COSTS, scan, batch=512)
    return run.log, run.finish_s(engine)


def _steps(name: str, log: np.ndarray, engine: Engine) -> pl.DataFrame:
    parts = seconds_of(log, engine)
    end = np.cumsum(parts.step_s)
    return pl.DataFrame(
        {"step": np.arange(len(log)), "start_s": end - parts.step_s, "step_s": parts.step_s,
         "compute_s": parts.compute_s, "memory_s": parts.memory_s}
    ).with_columns(order=pl.lit(name))  # fmt: skip
