"""Appendix A.5: how long an operation on the prefix tree takes, and the whole of building and transforming it."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.kernels.lookup import index_tree, longest_match
from workbench.blending.model.density import Density
from workbench.blending.model.estimating import estimate
from workbench.blending.model.transforming import transform
from workbench.blending.model.tree import tree_of
from workbench.catalogue.blendserve.jobs import (
    NF_DFS,
    TRACES,
    Setup,
    costs_for,
    made,
    random_of,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import On, Requests, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment

QUICK = 100_000
LOOKUPS = 20_000
_OTHER = "our tree on this machine, not theirs on their host: reported, not judged"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    stages = tables["stages"].filter(pl.col("replication") == 0)
    row = tables["operation"].row(0, named=True)
    return (
        f"Finding what a prompt shares takes {row['mean_s'] * 1e6:.2g} µs on average, 99 % take less than "
        f"{row['p99_s'] * 1e6:.2g} µs; the whole warm-up of {row['requests']:,} requests takes "
        f"{stages['seconds'].sum():.2g} s."
    )


@experiment(
    "blendserve/tree-operation",
    title="Time of a tree operation",
    question="What does the prefix tree cost at run time, and before it?",
    backends=("compiled",),
    seconds={"compiled": 4},
    draw="blending_maps.tree_times",
    say=_say,
    stochastic=True,
    matches=(
        Match(("run-time tree operation", "run-time tree operation over a GPU step"),
              incomparable=dict.fromkeys(("mean", "P99", ""), _OTHER)),
    ),
)  # fmt: skip
def tree_operation(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    trace: Annotated[str, Par("Density and sharing of", choices=tuple(TRACES), free=True, source="chosen")] = "Trace#1",
    requests: Requests = "400,000",
) -> dict[str, pl.DataFrame]:
    """Wall-clock times on this machine: a lookup of the longest shared prefix, and the stages of the warm-up."""
    costs = costs_for(context, model, accelerator)
    density, ratio = TRACES[trace]
    setup = Setup(costs, "burstgpt-like", density, ratio, size_of(context, requests, QUICK), context.seed)
    pool = made(setup).mix.pool
    stages, clock = [], time.perf_counter()

    def stage(name: str) -> None:
        nonlocal clock
        stages.append({"stage": name, "seconds": time.perf_counter() - clock})
        clock = time.perf_counter()

    tree = tree_of(pool)
    stage("build the tree")
    known = estimate(pool, tree, rng=random_of(setup.seed, "sample"))
    stage("estimate outputs")
    transform(pool, tree, known, costs, about=Density(length_biased=True))
    stage("sort and split")
    table = index_tree(pool.symbols, tree.parent, tree.begin, tree.length)
    stage("index for lookups")
    which = context.random("lookups").integers(pool.size, size=LOOKUPS)
    shape = (tree.begin, tree.length, *table)
    for who in range(100):  # compiled, and in the caches, before it is timed
        longest_match(pool.symbols, pool.start[who], pool.start[who + 1], *shape)
    taken = np.empty(LOOKUPS)
    for place, who in enumerate(which.tolist()):
        first, end = pool.start[who], pool.start[who + 1]
        before = time.perf_counter_ns()
        longest_match(pool.symbols, first, end, *shape)
        taken[place] = (time.perf_counter_ns() - before) * 1e-9
    step_s = float(served(setup, NF_DFS).seconds(rates_of(context, accelerator).engine(costs)).step_s.mean())
    mean, high = float(taken.mean()), float(np.quantile(taken, 0.99))
    known_rows = [
        ("run-time tree operation", "mean", mean, "s"),
        ("run-time tree operation", "P99", high, "s"),
        ("run-time tree operation over a GPU step", "", mean / step_s, "1"),
    ]
    operation = pl.DataFrame({"requests": [pool.size], "mean_s": [mean], "p99_s": [high], "step_s": [step_s]})
    return {"operation": operation, "stages": pl.DataFrame(stages), "headline": headline(known_rows)}
