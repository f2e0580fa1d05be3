"""When a random order beats the order down the tree: by sharing ratio, with idle prefixes kept or dropped."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_BALANCE,
    NF_DFS,
    Setup,
    Tuning,
    cite_sources,
    costs_for,
    limits,
    made,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import MEASURED, VIDEO, Main, On, Overlap, Requests, Served, Video
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

KEPT = f"{NF_BALANCE}, idle prefixes kept"
LINES = ((NF_DFS, NF_DFS, False), (NF_BALANCE, NF_BALANCE, False), (KEPT, NF_BALANCE, True), (BLEND, BLEND, False))
SHARINGS = (0.05, 0.15, 0.25, 0.35, 0.45)
QUICK = 100_000


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["retention"].filter(pl.col("replication") == 0)

    def crossing(name: str) -> str:
        ours = table.filter(pl.col("system") == name).sort("sharing")
        down = table.filter(pl.col("system") == NF_DFS).sort("sharing")
        ahead = ours["tokens_per_s"].to_numpy() - down["tokens_per_s"].to_numpy()
        places = ours["sharing"].to_numpy()
        if (ahead > 0).all():
            return "at every sharing ratio shown"
        if (ahead <= 0).all():
            return "at none shown"
        at = int(np.argmax(ahead <= 0))
        where = places[at - 1] + (places[at] - places[at - 1]) * ahead[at - 1] / (ahead[at - 1] - ahead[at])
        return f"up to a sharing ratio of {where:.2f}"

    kept = f"with idle prefixes kept, {crossing(KEPT)}"
    return f"A random order beats the order down the tree {crossing(NF_BALANCE)}; {kept}."


@experiment(
    "blendserve/retention",
    title="When does a random order beat the order down the tree?",
    question="Random order balances but loses prefixes: how much depends on keeping prefixes that nobody uses?",
    backends=("compiled",),
    seconds={"compiled": 15},
    draw="blending_maps.retention",
    say=_say,
    stochastic=True,
)
def retention(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    density: Annotated[float, Par("Density", low=0.6, high=2.0, step=0.1, free=True, source="chosen")] = 1.2,
    sharings: Annotated[
        tuple[float, ...], Par("Sharing ratios", low=0.03, high=0.6, free=True, source="columns of Fig 11")
    ] = SHARINGS,
    requests: Requests = "200,000",
    groups: Annotated[
        int,
        Par("Groups of MMLU", low=5, high=2000, log=True, step=0.1, status="inferred", source="MMLU has 57 subjects"),
    ] = 57,
    group_tokens: Annotated[
        int,
        Par(
            "Prefix of a group",
            "tokens",
            low=300,
            high=3000,
            log=True,
            step=0.1,
            status="fitted",
            source="86.46 % of 806 tokens: ASPLOS'26 paper, sharing ratio of MMLU",
        ),
    ] = 697,
    video_tokens: Video = VIDEO,
    pool_share: Annotated[
        float, Par("KV pool, share of what there is", low=0.1, high=1.0, step=0.05, free=True, source="chosen: all")
    ] = 1.0,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:
    """Throughput of each order by sharing ratio. Idle prefixes go least recently used first when room is needed."""
    costs, rates, rows = costs_for(context, model, accelerator), rates_of(context, accelerator, overlap), []
    cite_sources(context, main)
    costs = costs.model_copy(update={"pool_bytes": costs.pool_bytes * pool_share})
    tuning = Tuning(groups=groups, shared=group_tokens, video=video_tokens)
    for ratio in sorted(sharings):
        setup = Setup(costs, main, density, ratio, size_of(context, requests, QUICK), context.seed, -1, tuning)
        pool, engine = made(setup).mix.pool, rates.engine(costs)
        best = pool.tokens / limits(setup, rates).practical_s
        for name, system, kept in LINES:
            context.tell(f"sharing {ratio:g}, {name}")
            run = served(setup, system, retain=kept)
            rate = run.throughput(pool, engine)
            rows.append(
                {"sharing": ratio, "system": name, "tokens_per_s": rate, "share": rate / best,
                 "kept": run.sharing(pool) / made(setup).sharing}
            )  # fmt: skip
            context.so_far({"retention": pl.DataFrame(rows)})
    known = [(f"{row['system']}, x = sharing ratio", row["sharing"], row["tokens_per_s"], "tokens/s") for row in rows]
    return {"retention": pl.DataFrame(rows), "headline": headline(known)}
