"""§3.3: how much of the practical optimum the order down the prefix tree reaches."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.blending.model.bounds import phases
from workbench.blending.model.running import DENSE_BATCH
from workbench.catalogue.blendserve.jobs import (
    NF_DFS,
    TRACES,
    Rates,
    Setup,
    cite_sources,
    costs_for,
    limits,
    made,
    own_rates,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import (
    REACHED,
    ComputeShare,
    ComputeSlope,
    MemoryShare,
    MemorySlope,
    On,
    Requests,
    Served,
)
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Agree, Assumption, Match, experiment

QUICK = 200_000
SERIES, PLACE = "throughput of DFS order over the practical optimum", "Llama-3-8B, one A100"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["shares"].filter(pl.col("replication") == 0)
    table = table.filter(pl.col("backend") == table["backend"][0])
    return (
        f"Down the prefix tree the four traces reach {table['share'].min():.1%} to {table['share'].max():.1%} of the "
        f"practical optimum, {table['share'].mean():.1%} on average, though every prefix is computed once."
    )


@experiment(
    "blendserve/dfs-share",
    title="What the order down the tree alone reaches",
    question="Prefix sharing is largest down the tree: how far is that from the practical optimum?",
    backends=("compiled", "analytic"),
    seconds={"compiled": 6, "analytic": 3},
    draw="blending.dfs_share",
    say=_say,
    stochastic=True,
    matches=(
        Match(
            assumptions=(
                Assumption(
                    "kernels disturb each other as NanoFlow measured", {"memory_slope": 0.3, "compute_slope": 0.2}
                ),
            ),
        ),
    ),
    agrees=(Agree("share of the optimum", "shares", ("trace",), "share", {("compiled", "analytic"): (-0.05, 0.1)}),),
)  # fmt: skip
def dfs_share(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    requests: Requests = "400,000",
    memory_slope: MemorySlope = 0.5,
    compute_slope: ComputeSlope = 1 / 3,
    compute_share: ComputeShare = REACHED.compute_share,
    memory_share: MemoryShare = REACHED.memory_share,
) -> dict[str, pl.DataFrame]:
    """The optimum over the run's time; by formula each source is a stretch of its own with nothing to overlap with."""
    rates = own_rates(context, accelerator, Rates(compute_share, memory_share, memory_slope, compute_slope))
    costs = costs_for(context, model, accelerator)
    cite_sources(context, "burstgpt-like")
    rows, parts = [], []
    for trace, (density, ratio) in TRACES.items():
        context.tell(trace)
        setup = Setup(costs, "burstgpt-like", density, ratio, size_of(context, requests, QUICK), context.seed)
        best = limits(setup, rates).practical_s
        pool, engine = made(setup).mix.pool, rates.engine(costs)
        if context.backend == "analytic":
            found = phases(pool, made(setup).tree, engine, DENSE_BATCH)
            parts += [{"trace": trace, **phase._asdict()} for phase in found]
            seconds = sum(phase.seconds for phase in found)
        else:
            seconds = pool.tokens / served(setup, NF_DFS).throughput(pool, engine)
        rows.append({"trace": trace, "share": best / seconds, "seconds": seconds, "optimum_s": best})
        context.so_far({"shares": pl.DataFrame(rows), **({"phases": pl.DataFrame(parts)} if parts else {})})
    table = pl.DataFrame(rows)
    known = [(SERIES, trace, share, "1") for trace, share in table.select("trace", "share").iter_rows()]
    known += [(SERIES, PLACE, table["share"].mean(), "1")]
    known += [(f"{SERIES}, from two other numbers", PLACE, table["share"].mean(), "1")]
    return {"shares": table, **({"phases": pl.DataFrame(parts)} if parts else {}), "headline": headline(known)}
