"""Table 3: data parallel ranks, each with its part of the blended order."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from workbench.blending.kernels.layout import KV_READ, TOKENS
from workbench.blending.model.density import Density
from workbench.blending.model.ordering import blended
from workbench.blending.model.partition import partition
from workbench.blending.model.running import Run, serve
from workbench.catalogue.blendserve.jobs import (
    TRACES,
    USUAL,
    Rates,
    Setup,
    cite_sources,
    costs_for,
    made,
    own_rates,
    planned,
    size_of,
)
from workbench.catalogue.blendserve.parameters import REACHED, ComputeShare, MemoryShare, On, Requests, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Assumption, Match, experiment

RANKS = (1, 2, 4)
QUICK = 400_000
BALANCE = "work of a rank over the mean of the ranks [acceptance]"
PLACE = "compute and memory time, 4 ranks"
_TRACES = tuple(TRACES)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["scaling"].filter((pl.col("replication") == 0) & (pl.col("ranks") == max(RANKS)))
    return (
        f"Four accelerators serve {table['speed_up'].min():.2f} to {table['speed_up'].max():.2f} times as much as one; "
        f"the cuts lose at most {table['lost_sharing'].max() * 100:.2f} points of the sharing ratio."
    )


@experiment(
    "blendserve/tab3",
    title="Data parallel scaling",
    question="How much of the speed of several accelerators is left when the order is cut into one part for each?",
    backends=("compiled",),
    seconds={"compiled": 10},
    draw="blending_maps.scaling",
    say=_say,
    stochastic=True,
    matches=(
        Match(
            tuple(f"throughput, {trace}, x = data-parallel GPUs" for trace in _TRACES),
            assumptions=(
                Assumption(
                    "kernels reach the rates of Table 1's operations at a batch of 1024",
                    {"compute_share": 0.5, "memory_share": 0.6},
                ),
            ),
        ),
        Match(
            tuple(f"speed-up, {trace}, x = data-parallel GPUs" for trace in _TRACES),
            assumptions=(Assumption("a rank of four serves a hundred thousand requests", {"requests": "100,000"}),),
        ),
    ),
)
def tab3(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    requests: Requests = "400,000",
    compute_share: ComputeShare = REACHED.compute_share,
    memory_share: MemoryShare = REACHED.memory_share,
) -> dict[str, pl.DataFrame]:
    """The order is cut where the emitted work reaches a rank's share; the slowest rank ends the run."""
    costs = costs_for(context, model, accelerator)
    cite_sources(context, "burstgpt-like")
    rates = own_rates(context, accelerator, Rates(compute_share, memory_share))
    engine, rows, loads = rates.engine(costs), [], []
    for trace, (density, ratio) in TRACES.items():
        setup = Setup(costs, "burstgpt-like", density, ratio, size_of(context, requests, QUICK), context.seed)
        tokens, one = made(setup).mix.pool.tokens, math.nan
        for ranks in RANKS:
            context.tell(f"{trace}, {ranks} ranks")
            runs = _ranked(setup, ranks)
            seconds = np.array([run.seconds(engine).step_s.sum() for run in runs])
            computed = np.array([run.log[:, TOKENS].sum() for run in runs], float)
            read = np.array([run.log[:, KV_READ].sum() for run in runs], float)
            rate = tokens / float(seconds.max())
            one = rate if ranks == 1 else one
            rows.append(
                {"trace": trace, "ranks": ranks, "tokens_per_s": rate, "speed_up": rate / one,
                 "lost_sharing": made(setup).sharing - (1 - computed.sum() / tokens)}
            )  # fmt: skip
            loads += [
                {"trace": trace, "ranks": ranks, "rank": place, "compute": float(computed[place] / computed.mean()),
                 "memory": float(read[place] / read.mean()), "seconds": float(seconds[place])}
                for place in range(ranks)
            ]  # fmt: skip
    table, work = pl.DataFrame(rows), pl.DataFrame(loads)
    known_rows = []
    for row in rows:
        known_rows.append(
            (f"throughput, {row['trace']}, x = data-parallel GPUs", row["ranks"], row["tokens_per_s"], "tokens/s")
        )
        known_rows.append((f"speed-up, {row['trace']}, x = data-parallel GPUs", row["ranks"], row["speed_up"], "1"))
    four = work.filter(pl.col("ranks") == max(RANKS))
    away = pl.concat([four["compute"], four["memory"]])
    worst = away[int((away - 1).abs().arg_max())]
    known_rows.append((BALANCE, PLACE, worst, "1"))
    return {"scaling": table, "loads": work, "headline": headline(known_rows)}


@functools.lru_cache(maxsize=12)
def _ranked(setup: Setup, ranks: int) -> list[Run]:
    """The run of each rank over its part of the blended order."""
    pool, tree = made(setup).mix.pool, made(setup).tree
    known, moved = planned(setup, USUAL)
    about = Density(length_biased=True)
    order = blended(moved, pool, tree, known, setup.costs, about)
    parts = partition(order, pool, tree, known, setup.costs, ranks, about) if ranks > 1 else [order]
    return [serve(pool, tree, known, part, setup.costs, "feedback") for part in parts]
