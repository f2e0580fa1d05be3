"""§5.4: how many leaves are split off, and what the threshold buys."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.density import Density, request_density
from workbench.blending.model.transforming import BUDGET, KEPT, OUTLIER
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

QUICK = 50_000
KEEPS = (0.0, 0.9, 0.99, 1.0)
SHARE = "share of leaves split"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["splits"].filter((pl.col("replication") == 0) & (pl.col("kept") == KEPT))
    parts = [f"{row['split']:.3%} by {row['way']}" for row in table.iter_rows(named=True)]
    return (
        f"Keeping {KEPT:.0%} of the sharing ratio of {parameters['trace']}, leaves split off are "
        f"{' and '.join(parts)}; leaf densities then fall in {table['falling'][0]:.2%} of neighbouring pairs."
    )


@experiment(
    "blendserve/leaf-splits",
    title="What splitting buys",
    question="How many leaves leave their subtree, what does it cost in sharing, and what does it gain?",
    backends=("compiled",),
    seconds={"compiled": 12},
    draw="blending_maps.splits",
    say=_say,
    stochastic=True,
    matches=(
        Match((SHARE,), assumptions=(
            Assumption("a leaf is an outlier outside a longest falling part of the order", {"split": BUDGET}),)),
        Match(("share of the sharing ratio that the threshold keeps",),
              incomparable={"default": "a parameter of this run, no result of it"}),
    ),
)  # fmt: skip
def leaf_splits(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    trace: Annotated[str, Par("Density and sharing of", choices=tuple(TRACES), free=True, source="chosen")] = "Trace#1",
    requests: Requests = "400,000",
    split: Annotated[
        str, Par("What is judged", choices=(OUTLIER, BUDGET), source="the text's form and that of Algorithm 2 differ")
    ] = OUTLIER,
    scan: Scan = FEEDBACK,
) -> dict[str, pl.DataFrame]:
    """Both forms of splitting at several shares of sharing to keep: leaves split, threshold, order and throughput."""
    costs = costs_for(context, model, accelerator)
    cite_sources(context, main)
    density, ratio = TRACES[trace]
    setup = Setup(costs, main, density, ratio, size_of(context, requests, QUICK), context.seed)
    pool, rates = made(setup).mix.pool, rates_of(context, accelerator)
    engine, best = rates.engine(costs), pool.tokens / limits(setup, rates).practical_s
    rows = []
    for way in (OUTLIER, BUDGET):
        for kept in KEEPS:
            context.tell(f"{way}, {kept:.0%} kept")
            plan = USUAL._replace(split=way, kept=kept)
            known, moved = planned(setup, plan)
            order = request_density(pool.prompt, known.output, costs, Density(length_biased=True))[moved.order]
            rate = served(setup, BLEND, plan, scan).throughput(pool, engine)
            rows.append(
                {"way": way, "kept": kept, "threshold_tokens": moved.threshold, "split": moved.split.size / pool.size,
                 "sharing": moved.sharing / made(setup).sharing, "rounds": moved.rounds, "share": rate / best,
                 "falling": float((np.diff(order) <= 0).mean())}
            )  # fmt: skip
    table = pl.DataFrame(rows)
    chosen = table.filter((pl.col("way") == split) & (pl.col("kept") == KEPT))
    known_rows = [(SHARE, "", chosen["split"][0], "1")]
    known_rows.append(("share of the sharing ratio that the threshold keeps", "default", KEPT, "1"))
    return {"splits": table, "headline": headline(known_rows)}
