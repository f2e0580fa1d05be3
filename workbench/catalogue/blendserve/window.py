"""Jobs that arrive over a day: blended inside windows, each of which must be done before the next one ends."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_DFS,
    TRACES,
    Setup,
    cite_sources,
    costs_for,
    limits,
    made,
    rates_of,
    served,
)
from workbench.catalogue.blendserve.parameters import MEASURED, Main, On, Overlap, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.errors import UserError

WINDOWS_H = (0.25, 0.5, 1.0, 2.0, 4.0)
DAY_H = 24.0
SHORTEST_H, LONGEST_H = 0.05, 12.0
FEWEST, MOST = 4_000, 400_000


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["windows"].filter(pl.col("replication") == 0)
    parts = []
    for system in (NF_DFS, BLEND):
        kept = table.filter((pl.col("system") == system) & (pl.col("in_time") >= 0.999)).sort("window_h")
        parts.append(f"{system} from windows of {kept['window_h'][0]:g} h on" if len(kept) else f"{system} in none")
    load = f"{parameters['load']:.0%} of what the practical optimum can serve"
    return f"At {load}, all is done in time by {', '.join(parts)}."


@experiment(
    "blendserve/window",
    title="Jobs that arrive over a day",
    question="Blending needs many requests to choose from: how short may a deadline window be?",
    backends=("compiled",),
    seconds={"compiled": 12},
    draw="blending_maps.windows",
    panels=("in time", "throughput"),
    say=_say,
    stochastic=True,
)
def window(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    trace: Annotated[str, Par("Density and sharing of", choices=tuple(TRACES), free=True, source="chosen")] = "Trace#2",
    windows_h: Annotated[
        tuple[float, ...], Par("Windows", "h", low=SHORTEST_H, high=LONGEST_H, free=True, source="chosen")
    ] = WINDOWS_H,
    load: Annotated[
        float,
        Par("Arrivals over what the practical optimum serves", low=0.3, high=1.2, step=0.05, free=True,
            source="chosen: between what both orders can do"),
    ] = 0.85,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Requests that arrive in a window are served together, in one order, after it, each window after the last one.

    A token is done in time if its request is done before the next window ends. All windows hold a mix of the same kind
    and size, so one run of a window stands for each; what is late pushes the next one back.
    """
    costs, rates, rows = costs_for(context, model, accelerator), rates_of(context, accelerator, overlap), []
    cite_sources(context, main)
    density, ratio = TRACES[trace]
    rate = load * _optimum_requests_per_s(Setup(costs, main, density, ratio, 100_000, context.seed), rates)
    most = MOST // 2 if context.mode == "quick" else MOST
    for hours in sorted(set(windows_h)):
        count = round(rate * hours * 3600)
        if not FEWEST <= count <= most:
            context.tell(f"{hours:g} h: {count:,} requests are left out")
            continue
        setup = Setup(costs, main, density, ratio, count, context.seed)
        pool, engine = made(setup).mix.pool, rates.engine(costs)
        for system in (NF_DFS, BLEND):
            context.tell(f"{hours:g} h, {system}")
            run = served(setup, system)
            finish_s = run.finish_s(engine)
            tokens = (pool.prompt + pool.output)[run.request].astype(float)
            done = _in_time(finish_s, tokens, hours * 3600, round(DAY_H / hours))
            rows.append(
                {"window_h": hours, "system": system, "requests": count, "in_time": done,
                 "tokens_per_s": pool.tokens / float(finish_s.max()), "busy": float(finish_s.max()) / (hours * 3600)}
            )  # fmt: skip
    if not rows:
        raise UserError(
            f"blendserve/window: parameter 'windows_h' holds no window of {FEWEST:,} to {most:,} requests at this "
            f"load; {_instead(rate * 3600, most)}."
        )
    known = [(f"{name}, {row['system']}, x = window in hours", row["window_h"], row[column], unit)
             for row in rows
             for name, column, unit in (("share of tokens in time", "in_time", "1"),
                                        ("throughput", "tokens_per_s", "tokens/s"))]  # fmt: skip
    return {"windows": pl.DataFrame(rows), "headline": headline(known)}


def _instead(requests_per_h: float, most: int) -> str:
    """Windows that hold neither too few nor too many requests, among those that can be asked for."""
    fewest = max(math.ceil(1000 * FEWEST / requests_per_h) / 1000, SHORTEST_H)
    largest = min(math.floor(1000 * most / requests_per_h) / 1000, LONGEST_H)
    if fewest <= largest:
        return f"give one from {fewest:g} to {largest:g} h"
    return f"no window from {SHORTEST_H:g} to {LONGEST_H:g} h does: take another load or accelerator"


def _optimum_requests_per_s(setup: Setup, rates) -> float:
    return setup.requests / limits(setup, rates).practical_s


def _in_time(finish_s: np.ndarray, tokens: np.ndarray, window_s: float, windows: int) -> float:
    """Share of tokens done before the next window ends, over a day that starts idle."""
    begin, done = 0.0, 0.0
    for place in range(windows):
        ready, due = (place + 1) * window_s, (place + 2) * window_s
        begin = max(begin, ready)
        done += float(tokens[begin + finish_s <= due].sum())
        begin += float(finish_s.max())
    return done / (windows * float(tokens.sum()))
