"""Orders beside each other: what each keeps of the sharing and reaches of the practical optimum."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.catalogue.blendserve.jobs import (
    BLEND,
    LONGEST_FIRST,
    NF_BALANCE,
    NF_DFS,
    PREFIX_GROUPS,
    TRACES,
    Setup,
    cite_sources,
    costs_for,
    limits,
    made,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import (
    FEEDBACK,
    MEASURED,
    Main,
    On,
    Overlap,
    Requests,
    Retain,
    Scan,
    Served,
)
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import experiment

ORDERS = (LONGEST_FIRST, NF_BALANCE, NF_DFS, PREFIX_GROUPS, BLEND)
QUICK = 50_000


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["orders"].filter(pl.col("replication") == 0)
    parts = [f"{table.filter(pl.col('system') == name)['share'].mean():.1%} {name}" for name in ORDERS]
    return f"Mean share of the practical optimum over the four traces: {', '.join(parts)}."


@experiment(
    "blendserve/orders",
    title="Five orders",
    question="Longest first, at random, down the tree, by prefix groups, blended: what does each order give up?",
    backends=("compiled",),
    seconds={"compiled": 12},
    draw="blending_maps.orders",
    panels=("share", "sharing"),
    say=_say,
    stochastic=True,
)
def orders(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
    retain: Retain = False,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:
    """Every order on the same pools and the same engine; prefix groups stand for BatchLLM, decode-heavy ones first."""
    costs, rates, rows = costs_for(context, model, accelerator), rates_of(context, accelerator, overlap), []
    cite_sources(context, main)
    for trace, (density, ratio) in TRACES.items():
        setup = Setup(costs, main, density, ratio, size_of(context, requests, QUICK), context.seed)
        pool, engine = made(setup).mix.pool, rates.engine(costs)
        best = pool.tokens / limits(setup, rates).practical_s
        for name in ORDERS:
            context.tell(f"{trace}, {name}")
            run = served(setup, name, scan=scan, retain=retain)
            kept = run.sharing(pool) / made(setup).sharing
            rows.append(
                {"trace": trace, "system": name, "share": run.throughput(pool, engine) / best, "kept": kept}
            )  # fmt: skip
            context.so_far({"orders": pl.DataFrame(rows)})
    known = [(f"share of the practical optimum, {row['system']}", row["trace"], row["share"], "1") for row in rows]
    return {"orders": pl.DataFrame(rows), "headline": headline(known)}
