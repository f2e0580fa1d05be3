"""Three ways to scan from both ends: as printed, with the length-biased mean, with density feedback."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.blending.kernels.layout import HELD
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_DFS,
    TRACES,
    USUAL,
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
    BIASED,
    MEASURED,
    PRINTED,
    SCANS,
    Main,
    On,
    Overlap,
    Requests,
    Served,
)
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

QUICK = 50_000


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["scanners"].filter(pl.col("replication") == 0)
    parts = [
        f"{table.filter(pl.col('scan') == name)['share'].mean():.1%} with {name}" for name in (*SCANS[::-1], NF_DFS)
    ]
    swaps = {name: table.filter(pl.col("scan") == name)["swaps"].sum() for name in (PRINTED, BIASED)}
    return (
        f"Mean share of the practical optimum over the four traces: {', '.join(parts)}. As printed the scanner counts "
        f"too little for who is in flight: {swaps[PRINTED]:,} times somebody is swapped out, {swaps[BIASED]:,} times "
        "with the length-biased mean."
    )


@experiment(
    "blendserve/scanners",
    title="Three ways to scan from both ends",
    question="How does the scanner have to count for the batch to have the density of all requests?",
    backends=("compiled",),
    seconds={"compiled": 12},
    draw="blending_maps.scanners",
    say=_say,
    stochastic=True,
)
def scanners(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    requests: Requests = "400,000",
    overlap: Overlap = MEASURED,
    known: Annotated[
        bool, Par("Videos' lengths are known", status="published", source="ASPLOS'26 paper §5.1: set beforehand")
    ] = True,
) -> dict[str, pl.DataFrame]:
    """Algorithm 3 admits so many prompt tokens a step that N_X requests stay in flight at each end.

    As printed a request in flight holds p + d / 2 tokens, on average over a unit; in truth those in flight are the long
    ones. The pool then overflows, requests are swapped out, and the compute-intensive end waits.
    """
    costs, rates, rows = costs_for(context, model, accelerator), rates_of(context, accelerator, overlap), []
    cite_sources(context, main)
    for trace, (density, ratio) in TRACES.items():
        setup = Setup(costs, main, density, ratio, size_of(context, requests, QUICK), context.seed)
        pool, engine = made(setup).mix.pool, rates.engine(costs)
        best = pool.tokens / limits(setup, rates).practical_s
        plan = USUAL._replace(known=known)
        for name in (*SCANS, NF_DFS):
            context.tell(f"{trace}, {name}")
            run = served(setup, NF_DFS, plan) if name == NF_DFS else served(setup, BLEND, plan, name)
            rows.append(
                {"trace": trace, "scan": name, "share": run.throughput(pool, engine) / best, "swaps": run.swaps,
                 "held": float(run.log[:, HELD].mean() / costs.pool_tokens), "sharing": run.sharing(pool)}
            )  # fmt: skip
    known_rows = [(f"share of the practical optimum, {r['scan']}", r["trace"], r["share"], "1") for r in rows]
    return {"scanners": pl.DataFrame(rows), "headline": headline(known_rows)}
