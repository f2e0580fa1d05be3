"""Figure 3: compute over memory time, step by step, for BurstGPT then OpenVid and blended."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.blendserve.jobs import BLEND, NF_DFS, Setup, cite_sources, costs_for, made, rates_of, served
from workbench.catalogue.blendserve.parameters import FEEDBACK, Main, On, Scan, Served
from workbench.catalogue.blendserve.series import binned
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

BASE = "one source after the other"
CROSSINGS = "crossings of a compute-to-memory ratio of 1, baseline order [acceptance]"
WIDTH = "width of the 5-95 % band of the ratio, baseline over BlendServe [acceptance]"
PLACE = "BurstGPT then OpenVid"
STEPS = 32_000
BINS = 320
_REQUESTS, _DENSITY = 80_000, 1.0


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["bands"].filter(pl.col("replication") == 0)
    rows = {row["order"]: row for row in table.iter_rows(named=True)}
    base, blend = rows[BASE], rows[BLEND]
    return (
        f"{BASE.capitalize()}, compute takes from {base['low']:.2g} to {base['high']:.2g} times as long as memory in 9 "
        f"of 10 stretches; blended, from {blend['low']:.2g} to {blend['high']:.2g} times."
    )


@experiment(
    "blendserve/fig3",
    title="Compute over memory time along the run",
    question="How does the ratio of compute to memory time change over the steps of a run?",
    backends=("compiled",),
    seconds={"compiled": 2},
    draw="blending.ratio",
    say=_say,
    stochastic=True,
)  # fmt: skip
def fig3(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    density: Annotated[
        float, Par("Density of the mix", low=0.5, high=2, step=0.05, free=True, source="chosen: the figure states none")
    ] = _DENSITY,
    requests: Annotated[
        int,
        Par("Requests", low=20_000, high=400_000, step=20_000, free=True,
            source="chosen: its compute part fills about 20,000 of the 32,000 steps shown"),
    ] = _REQUESTS,
    scan: Scan = FEEDBACK,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """The first 32,000 steps of both orders, in stretches of 100 steps; nothing of MMLU is in the mix."""
    costs = costs_for(context, model, accelerator)
    cite_sources(context, main)
    setup = Setup(costs, main, density, None, requests, context.seed)
    pool, engine = made(setup).mix.pool, rates_of(context, accelerator).engine(costs)
    lines, bands = [], []
    for name, system in ((BASE, NF_DFS), (BLEND, BLEND)):
        run = served(setup, system, scan=scan)
        table = binned(run.seconds(engine), BINS, STEPS).with_columns(order=pl.lit(name))
        lines.append(table)
        low, high = np.quantile(table["ratio"].to_numpy(), (0.05, 0.95))
        above = table["ratio"].to_numpy() > 1
        bands.append(
            {"order": name, "low": float(low), "high": float(high), "crossings": int((np.diff(above) != 0).sum()),
             "steps": run.steps, "throughput_tokens_per_s": run.throughput(pool, engine)}
        )  # fmt: skip
    base, blend = bands
    width = (base["high"] - base["low"]) / (blend["high"] - blend["low"])
    known = [(CROSSINGS, PLACE, base["crossings"], "1"), (WIDTH, PLACE, width, "1")]
    return {"ratio": pl.concat(lines), "bands": pl.DataFrame(bands), "headline": headline(known)}
