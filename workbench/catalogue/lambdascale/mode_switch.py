"""Leaving a pipeline: is a request's KV sooner computed again than moved?"""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.lambdascale.fig7 import MODELS
from workbench.catalogue.lambdascale.systems import GPUS, LargeCluster, SmallCluster, decode_s
from workbench.catalogue.links import link_cost
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.scaling.model import Switching, faster_to_recompute, move_s, recompute_s
from workbench.scaling.policy import keeps_kv_by

RECOMPUTED, MOVED = "recompute", "move"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
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


@experiment(
    "lambdascale/mode-switch",
    title="Recompute or move the KV at the switch?",
    question="A node that leaves its pipeline needs the KV of its requests: should it compute or receive it?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="staircase.mode_switch",
    say=_say,
    matches=(Match(tolerance=0.0),),
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
    weights; moving takes what the other nodes of the pipeline hold over the one link of the node.
    """
    counts = np.unique(np.round(np.geomspace(1, 100_000, 60)))
    times, crossovers, known = [], [], []
    for label, name in MODELS.items():
        shape, profile = context.model(name), context.cluster(large_cluster if label == "70B" else cluster)
        accelerator = profile.host.accelerator
        peak = float(accelerator.speed("flops_per_s", "nominal"))
        context.cite(f"peak of {accelerator.name}", peak, "FLOP/s", "datasheet", "profile")
        step_s = context.cite(f"decoding step of {label}", decode_s(label), "s", "published", "λScale artifact")
        one = Switching(
            parameters=shape.parameters, flops_per_s=GPUS[label] * flops_share * peak, least_s=step_s,
            kv_bytes=shape.kv_bytes_per_token, nodes=nodes,
            bytes_per_s=link_share * link_cost(context, profile).bytes_per_s, alpha_s=move_overhead_s,
        )  # fmt: skip
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
    for way, column in ((RECOMPUTED, "recompute_s"), (MOVED, "move_s")):
        named = table.with_columns(series=pl.format("time to {} the KV, {}", pl.lit(way), "model"))
        known += curve_rows(named, "series", "tokens", column, "s")
    return {"times": table, "crossover": pl.DataFrame(crossovers), "headline": headline(known)}
