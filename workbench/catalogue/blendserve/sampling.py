"""§5.4: how many requests must be sampled to know output lengths well enough."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.estimating import ORACLE, SUBTREE, TAG
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    TRACES,
    USUAL,
    Setup,
    cite_sources,
    costs_for,
    limits,
    made,
    planned,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, Main, On, Requests, Scan, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Assumption, Match, experiment

SHARES = (0.001, 0.01, 0.1, 1.0)
QUICK = 50_000
RATIO = "throughput with 1 % sampled over 100 % sampled"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["sampling"].filter((pl.col("replication") == 0) & (pl.col("way") == SUBTREE)).sort("sampled")
    low, high = table.row(0, named=True), table.row(-1, named=True)
    return (
        f"With {low['sampled']:.1%} of the requests sampled the run reaches {low['share']:.1%} of the practical "
        f"optimum, with {high['sampled']:.0%} {high['share']:.1%}."
    )


@experiment(
    "blendserve/sampling",
    title="How many samples are enough?",
    question="Output lengths are guessed from sampled requests of the same subtree: how many must be sampled?",
    backends=("compiled",),
    seconds={"compiled": 6},
    draw="blending_maps.sampling",
    say=_say,
    stochastic=True,
    matches=(
        Match(("share of requests sampled by default",),
              incomparable={"": "a parameter of these runs, no result of them"}),
        Match((RATIO,), assumptions=(
            Assumption("output lengths of videos are set beforehand", {"known": False}),)),
    ),
)  # fmt: skip
def sampling(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    trace: Annotated[str, Par("Density and sharing of", choices=tuple(TRACES), free=True, source="chosen")] = "Trace#1",
    requests: Requests = "400,000",
    shares: Annotated[
        tuple[float, ...],
        Par("Shares sampled", low=0.0001, high=1.0, free=True, source="chosen around the paper's 1 %"),
    ] = SHARES,
    known: Annotated[
        bool, Par("Videos' lengths are known", status="published", source="ASPLOS'26 paper §5.1: set beforehand")
    ] = True,
    scan: Scan = FEEDBACK,
) -> dict[str, pl.DataFrame]:
    """Share of the practical optimum and error of the estimates, by share sampled; beside it tags and true lengths."""
    costs = costs_for(context, model, accelerator)
    cite_sources(context, main)
    density, ratio = TRACES[trace]
    setup = Setup(costs, main, density, ratio, size_of(context, requests, QUICK), context.seed)
    pool, rates = made(setup).mix.pool, rates_of(context, accelerator)
    engine, best = rates.engine(costs), pool.tokens / limits(setup, rates).practical_s
    rows = []
    for way, sampled in [*((SUBTREE, share) for share in sorted(shares)), (TAG, 0.01), (ORACLE, 1.0)]:
        context.tell(f"{way}, {sampled:.2%} sampled")
        plan = USUAL._replace(way=way, sampled=sampled, known=known)
        run = served(setup, BLEND, plan, scan)
        guess = planned(setup, plan)[0].output
        rate = run.throughput(pool, engine)
        rows.append(
            {"way": way, "sampled": sampled, "tokens_per_s": rate, "share": rate / best, "swaps": run.swaps,
             "relative_error": float(np.abs(guess - pool.output).sum() / pool.output.sum())}
        )  # fmt: skip
    table = pl.DataFrame(rows)
    subtree = dict(table.filter(pl.col("way") == SUBTREE).select("sampled", "tokens_per_s").iter_rows())
    known_rows = [("share of the practical optimum, x = share sampled", row["sampled"], row["share"], "1")
                  for row in rows if row["way"] == SUBTREE]  # fmt: skip
    known_rows.append(("share of requests sampled by default", "", USUAL.sampled, "1"))
    if 0.01 in subtree and 1.0 in subtree:
        known_rows.append((RATIO, "", subtree[0.01] / subtree[1.0], "1"))
    return {"sampling": table, "headline": headline(known_rows)}
