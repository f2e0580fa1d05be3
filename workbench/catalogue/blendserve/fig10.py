"""Figure 10: compute and memory time of every step on Trace#2, for three orders."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.bounds import phases
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_BALANCE,
    NF_DFS,
    TRACES,
    Setup,
    cite_sources,
    costs_for,
    made,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, On, Requests, Scan, Served
from workbench.catalogue.blendserve.series import binned
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, experiment

SYSTEMS = (BLEND, NF_DFS, NF_BALANCE)
SWITCH = "step at which DFS turns from compute to memory"
BINS = 300
WINDOW = 500
"""Steps over which both times are averaged before they are compared."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["switch"]
    at = table.filter(pl.col("backend") == table["backend"][0])["step"][0]
    if "spread" not in tables:
        return f"By formula the order down the tree turns from compute to memory at step {at:,.0f}."
    spread = tables["spread"].filter(pl.col("replication") == 0)
    rows = {row["system"]: row for row in spread.iter_rows(named=True)}
    return (
        f"The order down the tree turns from compute to memory at step {at:,.0f}; compute over memory time varies by a "
        f"factor of {rows[NF_DFS]['factor']:,.0f} there, by {rows[BLEND]['factor']:.1f} when blended."
    )


@experiment(
    "blendserve/fig10",
    title="Compute and memory time of every step",
    question="When are compute and memory busy, down the tree, at random and blended?",
    backends=("compiled", "analytic"),
    seconds={"compiled": 4, "analytic": 1},
    draw="blending.steps",
    panels=SYSTEMS,
    say=_say,
    stochastic=True,
    matches=(
        Match(
            (SWITCH, f"{SWITCH}, computed"),
            assumptions=(Assumption("a step holds 1024 tokens", {"batch": "1152"}),),
        ),
    ),
    agrees=(Agree(SWITCH, "switch", ("trace",), "step", {("compiled", "analytic"): (-0.05, 0.05)}),),
)  # fmt: skip
def fig10(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    trace: Annotated[str, Par("Trace", choices=tuple(TRACES), status="published", source="ASPLOS'26 paper Fig 10")] = (
        "Trace#2"
    ),
    requests: Requests = "400,000",
    batch: Annotated[
        str,
        Par(
            "Dense batch",
            choices=("896", "1024", "1152", "2048"),
            status="published",
            source="tokens: NanoFlow's set-up for Llama-3-8B; BlendServe prints none",
        ),
    ] = "1024",
    scan: Scan = FEEDBACK,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Times of the steps in 300 stretches of equal length, and the step from which memory takes longer for good."""
    costs = costs_for(context, model, accelerator)
    cite_sources(context, "burstgpt-like")
    density, ratio = TRACES[trace]
    setup = Setup(costs, "burstgpt-like", density, ratio, size_of(context, requests, 400_000), context.seed)
    engine = rates_of(context, accelerator).engine(costs)
    if context.backend == "analytic":
        found = phases(made(setup).mix.pool, made(setup).tree, engine, int(batch))
        at = sum(phase.steps for phase in found[:-1])
        return {"switch": pl.DataFrame({"trace": [trace], "step": [at]}), "headline": headline([])}
    lines, spread = [], []
    for system in SYSTEMS:
        context.tell(system)
        seconds = served(setup, system, scan=scan, batch=int(batch)).seconds(engine)
        table = binned(seconds, BINS).with_columns(system=pl.lit(system))
        lines.append(table)
        low, high = np.quantile(table["ratio"].to_numpy(), (0.05, 0.95))
        spread.append({"system": system, "low": float(low), "high": float(high), "factor": float(high / low)})
        if system == NF_DFS:
            at = _switch(seconds.compute_s, seconds.memory_s)
    known = [(SWITCH, trace, at, "1"), (f"{SWITCH}, computed", trace, at, "1")]
    known += [("compute over memory time, 95 % over 5 % quantile", row["system"], row["factor"], "1") for row in spread]
    return {
        "steps": pl.concat(lines),
        "switch": pl.DataFrame({"trace": [trace], "step": [float(at)]}),
        "spread": pl.DataFrame(spread),
        "headline": headline(known),
    }


def _switch(compute_s: np.ndarray, memory_s: np.ndarray) -> int:
    """The first step from which memory takes longer than compute over a window."""
    ahead = np.cumsum(memory_s - compute_s)
    longer = ahead[WINDOW:] - ahead[:-WINDOW] > 0
    return int(np.argmax(longer)) + WINDOW // 2 if longer.any() else len(compute_s)
