"""The same jobs on other accelerators, and jobs made for each of them."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_BALANCE,
    NF_DFS,
    OPTIMAL,
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
from workbench.catalogue.blendserve.parameters import MEASURED, Main, Overlap, Requests, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

CHIPS = ("a100-80gb-sxm", "h100-80gb-sxm", "h200-141gb-sxm", "l40s-48gb")
SAME, OWN = "the A100's jobs", "jobs of the same density"
SYSTEMS = (NF_DFS, NF_BALANCE, BLEND)
QUICK = 50_000
BATCH = 4096
"""Largest dense batch: large enough not to bind on any of them."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["hardware"].filter((pl.col("replication") == 0) & (pl.col("system") == BLEND))
    table = table.filter(pl.col("jobs") == SAME)
    parts = [
        f"{row['gain']:.2f} on {row['accelerator']} (density {row['density']:.2f})"
        for row in table.iter_rows(named=True)
    ]
    return f"With the same jobs {BLEND} gains over the order down the tree: {', '.join(parts)}."


@experiment(
    "blendserve/hardware",
    title="The same jobs on other accelerators",
    question="Another accelerator has another balance of compute and memory: does blending still gain?",
    backends=("compiled",),
    seconds={"compiled": 20},
    draw="blending_maps.hardware",
    panels=(SAME, OWN),
    say=_say,
    stochastic=True,
)
def hardware(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerators: Annotated[
        tuple[str, ...],
        Par("Accelerators", choices=CHIPS, free=True, source="chosen: two generations, and one without NVLink"),
    ] = CHIPS,
    main: Main = "burstgpt-like",
    trace: Annotated[str, Par("Density and sharing of", choices=tuple(TRACES), free=True, source="chosen")] = "Trace#2",
    requests: Requests = "200,000",
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:
    """Throughput of three orders and the practical optimum; shares of peak rates and slopes are those of the A100."""
    rows = []
    cite_sources(context, main)
    density, ratio = TRACES[trace]
    size = size_of(context, requests, QUICK)
    first = Setup(costs_for(context, model, CHIPS[0]), main, density, ratio, size, context.seed)
    for name in accelerators:
        costs, rates = costs_for(context, model, name), rates_of(context, name, overlap)
        for jobs in (SAME, OWN):
            context.tell(f"{name}, {jobs}")
            own = costs.balance / first.costs.balance
            # The A100's jobs have another density here; asked for that density, the mix has the same counts.
            setup = first._replace(costs=costs, density=density * own if jobs == SAME else density)
            pool, engine = made(setup).mix.pool, rates.engine(costs)
            best = pool.tokens / limits(setup, rates).practical_s
            rate = {system: served(setup, system, batch=BATCH).throughput(pool, engine) for system in SYSTEMS}
            rate[OPTIMAL] = best
            rows += [
                {"accelerator": name, "jobs": jobs, "system": system, "tokens_per_s": value, "share": value / best,
                 "gain": value / rate[NF_DFS], "density": made(setup).mix.density}
                for system, value in rate.items()
            ]  # fmt: skip
            context.so_far({"hardware": pl.DataFrame(rows)})
    known = [
        (f"throughput, {row['system']}, {row['jobs']}", row["accelerator"], row["tokens_per_s"], "tokens/s")
        for row in rows
    ]
    return {"hardware": pl.DataFrame(rows), "headline": headline(known)}
