"""Leaving a pipeline: is a request's KV sooner computed again than moved?"""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.lambdascale.fig7 import MODELS
from workbench.catalogue.lambdascale.systems import GPUS, LargeCluster, SmallCluster, decode_s, must_hold
from workbench.catalogue.links import link_cost
from workbench.catalogue.pacing import cite_pacing
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Match, experiment
from workbench.results import Verdict
from workbench.scaling.model import Switching, faster_to_recompute, move_s, recompute_s
from workbench.scaling.policy import keeps_kv_by

RECOMPUTED, MOVED = "recompute", "move"
REAL_MODEL, REAL_TOKENS = "7B", (32, 256, 1024)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    said = [_by_formula(tables, parameters)] if "crossover" in tables else []
    if (checked := tables.get("identity")) is not None:
        times = tables["times"].filter(pl.col("backend") == checked["backend"][0]).sort("tokens").row(-1, named=True)
        said.append(
            f"Real processes recompute {times['tokens']:,.0f} tokens of {times['model']} in "
            f"{times['recompute_s'] * 1e3:.3g} ms and move them in {times['move_s'] * 1e3:.3g} ms at full size, and "
            + ("what follows is the same either way." if not any(checked["fault"]) else "what follows is not the same.")
        )
    return " ".join(said)


def _by_formula(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    parts = [
        f"{row['model']}: {row['recompute_s'] * 1e3:.3g} against {row['move_s'] * 1e3:.3g} ms, "
        + (
            f"recomputing is faster {_range(row['low'], row['high'])}"
            if row["low"] < row["high"]
            else "moving always is"
        )
        for row in tables["crossover"].to_dicts()
    ]
    return f"To recompute or to move the KV of {parameters['tokens']:,} tokens takes {'; '.join(parts)}."


def _range(low: float, high: float) -> str:
    if math.isinf(high):
        return f"above {low:,.0f} tokens" if low > 0 else "always"
    return f"between {low:,.0f} and {high:,.0f} tokens" if low > 0 else f"below {high:,.0f} tokens"


def _judge(draft: Draft) -> list[Verdict]:
    if (checked := draft.tables.get("identity")) is None:
        return []
    faults = [fault for fault in checked["fault"] if fault]
    most, gap = checked["difference"].max(), checked["gap"].min()
    how = "all logits equal bit for bit" if most == 0 else f"logits within {most:.1g} of the largest"
    return [
        Verdict(
            claim="greedy tokens after the switch are those of an undisturbed run",
            published="identical",
            ours="not identical" if faults else "identical",
            strength="exact",
            verdict="differs" if faults else "reproduced",
            reason=f"{faults[0]}. Assumed here: the machine's library keeps the bits of rows"
            if faults
            else f"{how}; smallest distance of the best two logits {gap:.2g}, at least {checked['distinct'].min()} "
            "different tokens",
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "lambdascale/mode-switch",
    title="Recompute or move the KV at the switch?",
    question="A node that leaves its pipeline needs the KV of its requests: should it compute or receive it?",
    backends=("analytic", "torch"),
    seconds={"analytic": 0.02, "torch": 15},
    draw="staircase.mode_switch",
    say=_say,
    matches=(Match(tolerance=0.0),),
    judges=(_judge,),
    agrees=tuple(
        Agree(
            f"time until the KV is there, way: {way}",
            "times",
            ("model", "tokens"),
            f"{way}_s",
            {("analytic", "torch"): (-0.02, 0.15)},
        )
        for way in (RECOMPUTED, MOVED)
    ),
)
def mode_switch(
    context: Context,
    *,
    cluster: SmallCluster = "lambdascale-testbed1",
    large_cluster: LargeCluster = "lambdascale-testbed2",
    tokens: Annotated[
        int,
        Par(
            "Tokens so far, of all prompts of a batch",
            low=1,
            high=100_000,
            log=True,
            free=True,
            source="4 prompts of at most 256 tokens in the artifact; chosen",
        ),
    ] = 512,
    nodes: Annotated[
        int, Par("Nodes of the pipeline", low=2, high=16, free=True, source="8: the artifact's longest pipeline")
    ] = 8,
    flops_share: Annotated[
        float,
        Par("Prefill: share of peak FLOP/s", low=0.05, high=1.0, step=0.05, free=True, source="0.5: chosen"),
    ] = 0.5,
    move_overhead_s: Annotated[
        float,
        Par(
            "Moving: overhead of each sender",
            "s",
            low=0.0,
            high=0.02,
            step=0.0005,
            free=True,
            status="inferred",
            source="as of a transfer block, fitted to λScale's records; λScale moves no KV",
        ),
    ] = 6.28e-3,
    link_share: Annotated[
        float,
        Par(
            "Moving: share of the link that is free",
            low=0.05,
            high=1.0,
            step=0.05,
            free=True,
            source="1: nothing else on it; weights of nodes that are not complete yet would take it",
        ),
    ] = 1.0,
) -> dict[str, pl.DataFrame]:
    """Seconds to recompute and to move the KV of so many tokens, and for how many recomputing is faster.

    Recomputing is one prefill over prompts and tokens so far, at least as long as a decoding step, which reads all
    weights; moving takes what the other nodes of the pipeline hold over the one link of the node. The real run does
    both with a small model for 7B: a prefill is computed and held to its full-size time, the cache travels over a paced
    link, and the tokens that follow are laid beside those of a run without a switch.
    """
    counts = np.unique(np.concatenate([np.round(np.geomspace(1, 100_000, 60)), REAL_TOKENS]))
    times, crossovers, known = [], [], []
    for label, name in MODELS.items():
        if context.backend == "torch" and label != REAL_MODEL:
            continue
        shape, profile = context.model(name), context.cluster(large_cluster if label == "70B" else cluster)
        must_hold(profile, shape, GPUS[label])
        accelerator = profile.host.accelerator
        peak = float(accelerator.speed("flops_per_s", "nominal"))
        context.cite(f"peak of {accelerator.name}", peak, "FLOP/s", "datasheet", "profile")
        step_s = context.cite(f"decoding step of {label}", decode_s(label), "s", "published", "λScale artifact")
        one = Switching(
            parameters=shape.parameters, flops_per_s=GPUS[label] * flops_share * peak, least_s=step_s,
            kv_bytes=shape.kv_bytes_per_token, nodes=nodes,
            bytes_per_s=link_share * link_cost(context, profile).bytes_per_s, alpha_s=move_overhead_s,
        )  # fmt: skip
        if context.backend == "torch":
            return _real(context, one)
        times.append(
            pl.DataFrame(
                {
                    "model": label,
                    "tokens": counts,
                    "recompute_s": recompute_s(one, counts),
                    "move_s": move_s(one, counts),
                }
            )
        )
        again, moved = float(recompute_s(one, tokens)[0]), float(move_s(one, tokens)[0])
        low, high = faster_to_recompute(one)
        crossovers.append(
            {
                "model": label,
                "low": low,
                "high": high,
                "recompute_s": again,
                "move_s": moved,
                "faster": keeps_kv_by(again, moved),
            }
        )
        known.append(("KV of a token", label, shape.kv_bytes_per_token, "bytes"))
    table = pl.concat(times)
    return {"times": table, "crossover": pl.DataFrame(crossovers), "headline": headline([*known, *_curves(table)])}


def _curves(table: pl.DataFrame) -> list[tuple[str, object, float, str]]:
    rows = []
    for way in (RECOMPUTED, MOVED):
        named = table.with_columns(series=pl.format("time to {} the KV, {}", pl.lit(way), "model"))
        rows += curve_rows(named, "series", "tokens", f"{way}_s", "s")
    return rows


def _real(context: Context, switching: Switching) -> dict[str, pl.DataFrame]:
    from workbench.scaling.real.recomputing import resume_elsewhere

    tokens = REAL_TOKENS if context.mode == "full" else REAL_TOKENS[:2]
    context.tell(f"real run: {REAL_MODEL}, {', '.join(map(str, tokens))} tokens recomputed and moved")
    run = resume_elsewhere(switching, tokens, context.seed, stop=context.give_way)
    cite_pacing(context, f"{REAL_MODEL}, recomputed or moved", run)
    table = run.times.select(
        pl.lit(REAL_MODEL).alias("model"), pl.col("tokens").cast(pl.Float64), "recompute_s", "move_s"
    )
    return {"times": table, "identity": run.identity, "headline": headline(_curves(table))}
