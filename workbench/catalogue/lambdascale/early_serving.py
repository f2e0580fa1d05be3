"""Serve early or wait? Tokens per second both ways, the area between, and the overhead at which it turns."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.lambdascale.fig8_running import BEGIN_S, new_rows, steps_of
from workbench.catalogue.lambdascale.replaying import Rules, batches, run_on
from workbench.catalogue.lambdascale.systems import (
    BATCH,
    BLOCKS,
    LAMBDASCALE,
    LargeCluster,
    Overhead,
    SmallCluster,
    World,
    formed,
    world,
)
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.scaling.model import (
    Formed,
    Speed,
    lanes,
    paying_overhead_s,
    tokens_gained,
    tokens_made,
    tokens_per_s,
)
from workbench.scaling.policy import Switch

EARLY, WAITING = "serving in pipelines", "waiting for all weights"
GAINED = "tokens gained by serving early, x = overhead of a dispatch in s"
LIMIT = "overhead of a dispatch at which early serving stops paying, x = replicas"
OVERHEADS_S = np.round(np.geomspace(1e-4, 1.0, 41), 6)
SOURCES = (1, 2, 3, 4, 6)
FOLLOWED = 1.25
"""How long tokens are counted, in times that all weights take."""

ENDLESS = 100_000
"""Tokens of a batch, more than any node makes meanwhile."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    if "limit" not in tables:
        made = dict(tables["ends"].select("how", "made").iter_rows())
        return (
            f"By the end pipelines have made {made[EARLY]:,.0f} tokens, waiting for all weights {made[WAITING]:,.0f}."
        )
    row = tables["limit"].filter(pl.col("sources") == tables["gain"]["sources"][0]).row(0, named=True)
    text = f"With k = {row['sources']} serving early makes {row['gained']:,.0f} tokens more than waiting"
    if row["gained"] < 0:
        text = f"With k = {row['sources']} serving early makes {-row['gained']:,.0f} tokens fewer than waiting"
    if tables["gain"]["gained"].abs().max() < 0.5:
        return f"With k = {row['sources']} serving early makes no more tokens than waiting, whatever a dispatch costs."
    if math.isinf(row["limit_s"]):
        return f"{text}, and always pays: nothing is lost at the switch."
    if row["limit_s"] <= 0:
        return f"{text}, and would not pay even if a dispatch cost nothing."
    return f"{text}; it pays while a dispatch costs less than {row['limit_s'] * 1e3:.3g} ms."


@experiment(
    "lambdascale/early-serving",
    title="Serve early or wait?",
    question="How many tokens do pipelines make before the weights are there, and when would waiting have made more?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.05, "compiled": 0.1, "simpy": 1.0},
    draw="staircase.early_serving",
    panels=("rates", "made", "gain"),
    say=_say,
    agrees=(
        Agree(
            "tokens made",
            "ends",
            ("how",),
            "made",
            {
                ("analytic", "compiled"): (-0.15, 0.02),
                ("analytic", "simpy"): (-0.15, 0.02),
                ("compiled", "simpy"): (0.0, 0.0),
            },
        ),
    ),
)
def early_serving(
    context: Context,
    *,
    cluster: SmallCluster = "lambdascale-testbed1",
    large_cluster: LargeCluster = "lambdascale-testbed2",
    model: Annotated[
        str, Par("Model", choices=("7B", "13B", "70B"), status="published", source="MLSys'26 paper §7.1")
    ] = "7B",
    nodes: Annotated[int, Par("Nodes", low=2, high=64, source="12: up to 12 in MLSys'26 paper §7.1")] = 12,
    sources: Annotated[
        int, Par("Replicas at first (k)", low=1, high=16, status="published", source="MLSys'26 paper §7.3: 1, 2, 4")
    ] = 2,
    overhead_s: Overhead = 0.002,
    variant: Annotated[
        str, Par("Pipelines", choices=("artifact", "paper"), status="published", source="artifact, or Algorithm 2")
    ] = "artifact",
    switch: Annotated[
        str,
        Par(
            "Nodes leave their pipeline",
            choices=("whole", "each"),
            status="published",
            source="when all are complete in the artifact, each when it is in the paper",
        ),
    ] = "whole",
    resume_tokens: Annotated[
        int,
        Par(
            "Tokens of a request that are prefilled again at the switch",
            low=0,
            high=10_000,
            source="512: 4 prompts and what they have made, chosen; the artifact limits a prompt to 256",
        ),
    ] = 512,
    flops_share: Annotated[
        float, Par("Prefill: share of peak FLOP/s", low=0.05, high=1.0, step=0.05, source="0.5: chosen")
    ] = 0.5,
) -> dict[str, pl.DataFrame]:
    """Tokens per second and tokens made over time both ways; tokens gained against the overhead of a dispatch.

    There is always work. A node that leaves a pipeline prefills what its request has so far, which makes a token as a
    step does but may take longer. Weights are as fast as if nobody computed. The engine loses a step in progress at the
    switch, where the formula counts the part that is done.
    """
    one = world(context, model, large_cluster if model == "70B" else cluster, nodes)
    accelerator = context.cluster(large_cluster if model == "70B" else cluster).host.accelerator
    peak = one.gpus * float(accelerator.speed("flops_per_s", "nominal"))
    prefill_s = 2 * one.model.parameters * resume_tokens / (flops_share * peak)
    resume_s = max(0.0, prefill_s - one.token_s)
    context.cite(
        "lost by resuming a request", resume_s, "s", "computed", "2 operations a parameter and token, less a step"
    )
    chosen = min(sources, nodes - 1)
    if context.backend != "analytic":
        return _watched(context, one, Rules(chosen, BEGIN_S, None, overhead_s, variant, switch))
    pace = Speed(token_s=one.token_s, stages=BLOCKS, overhead_s=overhead_s, batch=BATCH, resume_s=resume_s)
    out = formed(one, chosen, variant)
    limits = [
        {"sources": k, "limit_s": paying_overhead_s(each, pace, switch), "gained": tokens_gained(each, pace, switch)}
        for k, each in ((k, formed(one, k, variant)) for k in sorted({*SOURCES, chosen}) if k < nodes)
    ]
    gain = [
        {"sources": chosen, "overhead_s": value, "gained": tokens_gained(out, _with(pace, value), switch)}
        for value in sorted({*OVERHEADS_S.tolist(), overhead_s})
    ]
    known = [(GAINED, row["overhead_s"], row["gained"], "tokens") for row in gain]
    known += [(LIMIT, row["sources"], row["limit_s"], "s") for row in limits if math.isfinite(row["limit_s"])]
    rates = _over_time(out, pace, switch)
    return {
        "rates": rates,
        "ends": _ends(rates),
        "gain": pl.DataFrame(gain),
        "limit": pl.DataFrame(limits),
        "headline": headline(known),
    }


def _ends(rates: pl.DataFrame) -> pl.DataFrame:
    """Tokens made by the last instant."""
    return rates.group_by("how", maintain_order=True).agg(pl.col("made").last())


def _watched(context: Context, one: World, rules: Rules) -> dict[str, pl.DataFrame]:
    """The same by the serving engine, with more batches waiting than there are nodes and no end of tokens."""
    end_s = FOLLOWED * float(formed(one, rules.replicas, rules.variant).complete_s.max())
    work = batches(np.zeros(3 * one.nodes), tokens=ENDLESS)
    time, parts = np.linspace(0.0, end_s, 61), []
    for how, early in ((EARLY, True), (WAITING, False)):
        chosen = rules if early else rules._replace(early=False, switch="each")
        run = run_on(context, one, LAMBDASCALE, chosen, work, BEGIN_S + end_s)
        made = BATCH * np.searchsorted(steps_of(run, new_rows(run)), time, side="right")
        rate = np.diff(made, prepend=0) / (time[1] - time[0])
        parts.append(pl.DataFrame({"how": how, "time_s": time, "tokens_per_s": rate, "made": made.astype(float)}))
    rates = pl.concat(parts)
    ends = _ends(rates)
    made = dict(ends.iter_rows())
    gain = {"sources": rules.replicas, "overhead_s": rules.overhead_s, "gained": made[EARLY] - made[WAITING]}
    known = [(GAINED, rules.overhead_s, gain["gained"], "tokens")]
    return {"rates": rates, "ends": ends, "gain": pl.DataFrame([gain]), "headline": headline(known)}


def _with(pace: Speed, overhead_s: float) -> Speed:
    return pace.model_copy(update={"overhead_s": overhead_s})


def _over_time(out: Formed, pace: Speed, switch: Switch) -> pl.DataFrame:
    """Rate and tokens made at each instant at which either way changes its rate."""
    ways = {EARLY: lanes(out, pace, switch), WAITING: lanes(out, pace, early=False)}
    edges = [table[name].to_numpy() for table in ways.values() for name in ("begin_s", "end_s")]
    time = np.unique(np.concatenate([[0.0], *(edge[np.isfinite(edge)] for edge in edges)]))
    time = np.append(time, FOLLOWED * float(out.complete_s.max()))
    parts = [
        pl.DataFrame(
            {"how": how, "time_s": time, "tokens_per_s": tokens_per_s(table, time), "made": tokens_made(table, time)}
        )
        for how, table in ways.items()
    ]
    return pl.concat(parts)
