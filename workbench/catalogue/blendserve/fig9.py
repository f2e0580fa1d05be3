"""Figure 9: how much prefix sharing each order keeps."""

from collections.abc import Mapping
from typing import Any

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
    made,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, MainShared, On, Requests, Retain, Scan, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Assumption, Match, experiment

QUICK = 50_000
KEPT = "prefix sharing kept over the largest possible"
SYSTEMS = (NF_BALANCE, BLEND, NF_DFS)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["sharing"].filter(pl.col("replication") == 0)
    least = table.filter(pl.col("system") == BLEND)["kept"].min()
    random = table.filter(pl.col("system") == NF_BALANCE)["kept"]
    return (
        f"{BLEND} keeps at least {least:.2%} of the largest sharing; a random order keeps {random.min():.0%} to "
        f"{random.max():.0%}{' with idle prefixes kept' if parameters['retain'] else ''}."
    )


@experiment(
    "blendserve/fig9",
    title="Prefix sharing kept",
    question="How much of the possible prefix sharing do a blended and a random order keep?",
    backends=("compiled",),
    seconds={"compiled": 8},
    draw="blending.sharing",
    say=_say,
    stochastic=True,
    matches=(
        Match(
            (f"{KEPT}, {NF_BALANCE}",),
            note="the trace that keeps most counts; Table 4's own 0.02 for BurstGPT is two fifths of a ratio of 0.05, "
            "and a prefix that all requests share is kept in any order",
            assumptions=(
                Assumption("all requests of BurstGPT share 5 tokens", {"system_prompt_tokens": 0}),
            ),
        ),
        Match(
            ("prototype: share of hits that NanoFlow-Balance keeps with idle prefix retention",),
            incomparable={"": "this run keeps no idle prefixes; blendserve/retention does"},
        ),
    ),
)  # fmt: skip
def fig9(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
    retain: Retain = False,
    system_prompt_tokens: MainShared = 5,
) -> dict[str, pl.DataFrame]:
    """Share of all tokens that prefix hits saved in each run, and that over what a trie allows."""
    costs = costs_for(context, model, accelerator)
    cite_sources(context, "burstgpt-like")
    rows = []
    for trace, (density, ratio) in TRACES.items():
        context.tell(trace)
        size = size_of(context, requests, QUICK)
        own = -1 if system_prompt_tokens == 5 else system_prompt_tokens
        setup = Setup(costs, "burstgpt-like", density, ratio, size, context.seed, own)
        pool, most = made(setup).mix.pool, made(setup).sharing
        for system in SYSTEMS:
            run = served(setup, system, scan=scan, retain=retain)
            found = run.sharing(pool)
            hits = run.hit_rate(pool)
            rows.append({"trace": trace, "system": system, "sharing": found, "hit_rate": hits, "kept": found / most})
        rows.append({"trace": trace, "system": OPTIMAL, "sharing": most, "hit_rate": None, "kept": 1.0})
    table = pl.DataFrame(rows)
    known = [(f"sharing ratio, {s}", t, v, "1") for s, t, v in table.select("system", "trace", "sharing").iter_rows()]
    for system, pick in ((BLEND, "min"), (NF_BALANCE, "max")):
        kept = table.filter(pl.col("system") == system)["kept"]
        known.append((f"{KEPT}, {system}", "four traces", getattr(kept, pick)(), "1"))
    return {"sharing": table, "headline": headline(known)}
