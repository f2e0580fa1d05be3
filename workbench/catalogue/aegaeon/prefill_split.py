"""Ablation: how many of the GPUs process prompts."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.fig11 import CUT, DRAWN
from workbench.catalogue.aegaeon.pools import METRICS, promise, serve
from workbench.catalogue.aegaeon.sweep import told
from workbench.catalogue.context import Context
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.results import Verdict

SERIES = "attainment, x = prefill instances of 16"
SPLITS = (2, 3, 4, 5, 6, 7, 8, 10, 12)
QUICK = (3, 4, 5, 6, 8, 10)


def _best(table: pl.DataFrame) -> int:
    mean = table.group_by("prefill").agg(pl.col("qos-artifact").mean()).sort("prefill")
    return int(mean["prefill"][int(mean["qos-artifact"].arg_max())])


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["curve"].filter(pl.col("backend") == tables["curve"]["backend"][0])
    best = _best(table)
    row = table.filter(pl.col("prefill") == best)
    return (
        f"Of 16 GPUs {best} should process prompts: attainment is then {row['qos-artifact'].mean():.2f}, with a first "
        f"token after {row['ttft_s'].mean():.2f} s on average."
    )


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["curve"]
    table = table.filter(pl.col("backend") == table["backend"][0])
    if table["prefill"].n_unique() < 3:
        return []
    best = _best(table)
    inside = table["prefill"].min() < best < table["prefill"].max()
    return [
        Verdict(
            claim="attainment is best for a split in between",
            published="interior optimum (authors' simulator, rerun: 5 of 16)",
            ours=float(best),
            strength="ordering",
            verdict="not comparable" if not draft.comparable else "reproduced" if inside else "differs",
            reason=draft.reason
            or f"best with {best} of {table['prefill'].min()} to {table['prefill'].max()} instances"
            + ("" if inside else ". Assumed here: the load of the rerun"),
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "aegaeon/prefill-split",
    title="How many GPUs for prompts, how many for decoding?",
    question="With 16 GPUs, how many should process prompts?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 1.5, "simpy": 3.0},
    draw="pooling_settings.split",
    panels=("attainment", "ttft"),
    say=_say,
    stochastic=True,
    matches=(
        Match(note=DRAWN, assumptions=(CUT, Assumption("weights load at 16 GB/s", {"variant": "paper"}))),
    ),
    judges=(_judge,),
    agrees=(
        Agree("attainment, share of time", "curve", ("prefill",), "qos-artifact", {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def prefill_split(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    variant: Annotated[
        str,
        Par("Run as in the", choices=pools.VARIANTS, status="published", source="the rerun is of the simulator"),
    ] = "simulator",
    arrivals: pools.Arrivals = "artifact",
    models: Annotated[int, Par("Models", low=4, high=128, source="64 in the rerun")] = 64,
    prompt_factor: Annotated[float, Par("Prompts times", low=0.5, high=4, step=0.5, source="1 in the rerun")] = 1.0,
    output_factor: Annotated[float, Par("Outputs times", low=0.5, high=4, step=0.5, source="1 in the rerun")] = 1.0,
) -> dict[str, pl.DataFrame]:
    """Attainment by four definitions and the first token against the number of prefill instances, on one node."""
    splits = (6,) if context.backend == "simpy" else QUICK if context.mode == "quick" else SPLITS
    rows = []
    for prefill in splits:
        context.tell(f"{prefill} prefill instances")
        run = serve(
            context, models, 0.1, 120.0, cluster=cluster, variant=variant, generator=arrivals, lead=prefill, nodes=1,
            prompt_factor=prompt_factor, output_factor=output_factor,
        )  # fmt: skip
        out = run.outcome
        ttft_s = float(np.nanmean(out.first_token_s - run.lowered.requests.arrival_s))
        rows.append({"prefill": prefill, **run.attainment(promise()), "ttft_s": ttft_s})
    known = [(SERIES, row["prefill"], row["qos-artifact"], "1") for row in rows]
    known += [
        ("mean time to the first token, x = prefill instances of 16", r["prefill"], r["ttft_s"], "s") for r in rows
    ]
    return {"curve": pl.DataFrame(rows).select("prefill", *METRICS, "ttft_s"), "headline": told(known)}
