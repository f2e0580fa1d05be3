"""Figure 18: utilisation before and after pooling, on a synthetic market, since the trace is private."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment

_PAPER = "SOSP'25 paper §7.5"
HOURS = 70
SERIES = "GPU utilisation over 70 h"
WINDOW = "length of the window"
FLEETS = ("before", "after")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    mean = dict(tables["hours"].group_by("fleet", maintain_order=True).agg(pl.col("utilisation").mean()).iter_rows())
    return (
        f"On a synthetic market the same work keeps {mean['before']:.1%} of the old fleet busy and {mean['after']:.1%} "
        "of the pool; the published curve rests on a private trace and is not judged."
    )


@experiment(
    "aegaeon/fig18",
    title="How busy are the GPUs?",
    question="How does utilisation change over days when the same requests are served by fewer, pooled GPUs?",
    backends=("compiled",),
    seconds={"compiled": 0.05},
    draw="pooling_formulas.days",
    say=_say,
    stochastic=True,
    matches=(
        Match((SERIES,), incomparable=dict.fromkeys(
            ("before, lowest", "before, highest", "after"), "the production trace is private; ours is synthetic"
        )),
        Match((WINDOW,), incomparable={"": "a parameter of this run, no result of it"}),
    ),
)  # fmt: skip
def fig18(
    context: Context,
    *,
    before: Annotated[int, Par("GPUs before", low=1, high=5000, free=True, status="published", source=_PAPER)] = 1192,
    after: Annotated[int, Par("GPUs after", low=1, high=5000, free=True, status="published", source=_PAPER)] = 213,
    mean_busy: Annotated[
        float, Par("GPUs that the work keeps busy on average", low=1, high=1000, free=True, source="chosen: synthetic")
    ] = 90.0,
    swing: Annotated[
        float, Par("Swing of the day", low=0, high=0.95, step=0.05, free=True, source="chosen: synthetic")
    ] = 0.4,
) -> dict[str, pl.DataFrame]:
    """Share of busy GPUs of both fleets, hour by hour over 70 h, for a load that swings with the day and with chance.

    The load is the same for both; GPUs that the old fleet had for it beyond one each stand idle.
    """
    rng = context.random("days")
    hour = np.arange(HOURS + 1)
    day = 1 + swing * np.sin(2 * np.pi * (hour - 9) / 24)
    busy = mean_busy * day * rng.gamma(60.0, 1 / 60.0, hour.size)
    rows = []
    for fleet, gpus in zip(FLEETS, (before, after), strict=True):
        share = np.minimum(1.0, busy / gpus)
        rows.append(pl.DataFrame({"hour": hour, "utilisation": share}).with_columns(fleet=pl.lit(fleet)))
    table = pl.concat(rows)
    old = table.filter(pl.col("fleet") == "before")["utilisation"]
    new = table.filter(pl.col("fleet") == "after")["utilisation"]
    known = [
        (SERIES, "before, lowest", float(old.min()), "1"),
        (SERIES, "before, highest", float(old.max()), "1"),
        (SERIES, "after", float(new.mean()), "1"),
        (WINDOW, "", 3600.0 * HOURS, "s"),
    ]
    return {"hours": table, "headline": headline(known)}
