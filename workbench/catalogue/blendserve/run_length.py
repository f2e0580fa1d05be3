"""How many requests a run needs before its ends no longer matter."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.kernels.layout import HELD
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_DFS,
    TRACES,
    Setup,
    Tuning,
    cite_sources,
    costs_for,
    limits,
    made,
    rates_of,
    served,
)
from workbench.catalogue.blendserve.parameters import MEASURED, VIDEO, Main, On, Overlap, Served, Video
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.errors import UserError

SIZES = (20_000, 40_000, 100_000, 200_000, 400_000, 1_000_000)
QUICK = 50_000
LOW = 0.25
"""The tail is what remains of a run after the pool was a quarter full for the last time."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["lengths"].filter((pl.col("replication") == 0) & (pl.col("system") == BLEND)).sort("requests")
    enough = table.filter(pl.col("tail") < 0.05)
    first, last = table.row(0, named=True), table.row(-1, named=True)
    found = f"from {enough['requests'][0]:,} requests on" if len(enough) else "at none of these sizes"
    return (
        f"{BLEND} reaches {first['share']:.1%} of the practical optimum with {first['requests']:,} requests and "
        f"{last['share']:.1%} with {last['requests']:,}; its tail takes less than 5 % of the time {found}."
    )


@experiment(
    "blendserve/run-length",
    title="Is the run long enough?",
    question="A few hundred videos make most of the memory time: how many requests does a run need?",
    backends=("compiled",),
    seconds={"compiled": 15},
    draw="blending_maps.run_length",
    panels=("share", "tail"),
    say=_say,
    stochastic=True,
)
def run_length(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    trace: Annotated[str, Par("Density and sharing of", choices=tuple(TRACES), free=True, source="chosen")] = "Trace#2",
    sizes: Annotated[
        tuple[int, ...], Par("Requests", low=5_000, high=2_000_000, free=True, source="chosen round A.3 and §6.2")
    ] = SIZES,
    video_tokens: Video = VIDEO,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:
    """Share of the practical optimum and length of the tail, by number of requests; each size is a mix of its own."""
    costs, rates, rows = costs_for(context, model, accelerator), rates_of(context, accelerator, overlap), []
    cite_sources(context, main)
    density, ratio = TRACES[trace]
    if context.mode == "quick" and min(sizes) > QUICK:
        raise UserError(
            f"blendserve/run-length: parameter 'sizes' holds no size for quick mode, which leaves out those above "
            f"{QUICK:,} requests; add a smaller one, or run it in full."
        )
    for size in sorted(set(sizes)):
        if context.mode == "quick" and size > QUICK:
            continue
        setup = Setup(costs, main, density, ratio, size, context.seed, -1, Tuning(video=video_tokens))
        engine = rates.engine(costs)
        best = limits(setup, rates).practical_s
        for system in (NF_DFS, BLEND):
            context.tell(f"{size:,} requests, {system}")
            run = served(setup, system)
            step_s = run.seconds(engine).step_s
            full = np.flatnonzero(run.log[:, HELD] > LOW * costs.pool_tokens)
            rest = float(step_s[full[-1] + 1 :].sum()) if full.size else float(step_s.sum())
            rows.append(
                {"requests": size, "system": system, "share": best / float(step_s.sum()),
                 "tail": rest / float(step_s.sum()), "videos": made(setup).mix.counts["OpenVid"]}
            )  # fmt: skip
    known = [(f"share of the practical optimum, {row['system']}, x = requests", row["requests"], row["share"], "1")
             for row in rows]  # fmt: skip
    return {"lengths": pl.DataFrame(rows), "headline": headline(known)}
