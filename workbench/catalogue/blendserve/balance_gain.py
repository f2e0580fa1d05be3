"""§6.4: BlendServe over a random order on the traces of high sharing."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_BALANCE,
    TRACES,
    Setup,
    cite_sources,
    costs_for,
    made,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, On, Requests, Retain, Scan, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Assumption, Match, experiment

QUICK = 100_000


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["gain"].filter(pl.col("replication") == 0)
    rows = {row["trace"]: row["gain"] for row in table.iter_rows(named=True)}
    texts = ", ".join(f"{gain:.2f} on {trace}" for trace, gain in rows.items())
    return f"Over a random order {BLEND} gains {texts}."


@experiment(
    "blendserve/balance-gain",
    title="BlendServe over a random order",
    question="A random order blends too: what does it lose by not sharing prefixes?",
    backends=("compiled",),
    seconds={"compiled": 7},
    draw="blending.balance_gain",
    say=_say,
    stochastic=True,
    matches=(
        Match(assumptions=(Assumption("prefixes that nobody uses are dropped at once", {"retain": True}),)),
    ),
)  # fmt: skip
def balance_gain(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
    retain: Retain = False,
) -> dict[str, pl.DataFrame]:
    """Ratio of throughputs on each trace, and what the random order keeps of the sharing ratio."""
    costs = costs_for(context, model, accelerator)
    cite_sources(context, "burstgpt-like")
    engine, rows = rates_of(context, accelerator).engine(costs), []
    for trace, (density, ratio) in TRACES.items():
        context.tell(trace)
        setup = Setup(costs, "burstgpt-like", density, ratio, size_of(context, requests, QUICK), context.seed)
        pool = made(setup).mix.pool
        blend, random = (served(setup, system, scan=scan, retain=retain) for system in (BLEND, NF_BALANCE))
        gain = blend.throughput(pool, engine) / random.throughput(pool, engine)
        rows.append({"trace": trace, "gain": gain, "sharing": random.sharing(pool), "largest": made(setup).sharing})
        context.so_far({"gain": pl.DataFrame(rows)})
    table = pl.DataFrame(rows)
    known = [("BlendServe over NanoFlow-Balance", row["trace"], row["gain"], "1") for row in rows]
    known.append(("BlendServe over NanoFlow-Balance, mean", "Trace#1 and Trace#2", table["gain"][:2].mean(), "1"))
    return {"gain": table, "headline": headline(known)}
