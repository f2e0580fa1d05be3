"""Figure 7: what an engine's start consists of, and how fast weights can load."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.catalogue.aegaeon import stages
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import ALL, Match, experiment
from workbench.pooling.model.facts import facts

START = "engine start of an unoptimised 13B vLLM"
PLAIN = "weight load before optimisation"
RATE = "bandwidth of the weight load before optimisation"
AFTER = "weight load after optimisation"
REMOVED = "latency removed"
REUSE = "share of the first initialisation that reuse removes"
DEFAULT, FIRST, SECOND = "as it is", "with reuse", "with reuse, pinned and chunked"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    total = dict(tables["bars"].group_by("engine", maintain_order=True).agg(pl.col("seconds").sum()).iter_rows())
    return (
        f"An engine starts in {total[DEFAULT]:.1f} s; reusing its parts leaves {total[FIRST]:.1f} s, and pinned copies "
        f"in chunks {total[SECOND]:.2f} s."
    )


@experiment(
    "aegaeon/fig7",
    title="What does an engine's start consist of?",
    question="Of the 26.9 s that a 13B engine takes to start, how much does reuse remove, and how much a better load?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="pooling_formulas.start",
    say=_say,
    matches=(
        Match((START, PLAIN, RATE), fitted=ALL, tolerance=0.01),
        Match((f"{AFTER}, as read by a note",), incomparable={"13B": "a third party's reading of the figure"}),
    ),
)  # fmt: skip
def fig7(
    context: Context,
    *,
    model: stages.Served = "llama-2-13b",
    tp: stages.Tp = 2,
    nominal_bytes_per_s: stages.Nominal = 32e9,
) -> dict[str, pl.DataFrame]:
    """Seconds of each part of a start: as it is, with parts reused, and with weights from pinned memory in chunks.

    What words alone tell of the parts is inferred so that they add up to 26.9 s; the sources say which.
    """
    found = stages.stages_of(context, model, tp, nominal_bytes_per_s, 0, 0.0)
    plain_s = found.weight_bytes / found.plain_bytes_per_s
    parts = {"executor": found.executor_s, "profiling": found.profiling_s, "pinning": found.pinning_s,
             "other": found.other_s}  # fmt: skip
    fast_s = found.weight_bytes / found.bytes_per_s
    bars = {DEFAULT: parts | {"weights": plain_s}, FIRST: {"weights": plain_s}, SECOND: {"weights": fast_s}}
    rows = [
        {"engine": engine, "stage": stage, "seconds": seconds}
        for engine, stages_ in bars.items()
        for stage, seconds in stages_.items()
    ]
    rate = context.cite("plain copies", facts().stages.plain_bytes_per_s)
    known = [
        (START, "", found.start_s, "s"),
        (PLAIN, "LLaMA-13B, TP=2, PCIe 4.0", plain_s, "s"),
        (RATE, "LLaMA-13B, TP=2, PCIe 4.0", rate, "bytes/s"),
        (AFTER, "13B", fast_s, "s"),
        (f"{AFTER}, as read by a note", "13B", fast_s, "s"),
        (REMOVED, "13B", 1 - fast_s / found.start_s, "1"),
        (REUSE, "small engine or 13B", 1 - plain_s / found.start_s, "1"),
    ]
    return {"bars": pl.DataFrame(rows), "headline": headline(known)}
