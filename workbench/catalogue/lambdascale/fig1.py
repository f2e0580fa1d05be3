"""Figure 1: the request rate of a bursty trace under a flat line of provisioned instances."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.catalogue.tracing import BURST, replayed
from workbench.errors import UserError
from workbench.workloads.statistics.arrivals import WINDOWS_S, arrival_statistics

SHOWN = 900
MINUTE = "arrivals in minute x (first minute is 1)"
PEAK = "peak over mean arrivals"
SURGE = "surge over the usual rate, within minutes"
SURGE_S, BEFORE_S = 10, 300
"""A surge: arrivals in 10 s over the mean of the five minutes before."""


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    row = tables["provision"].row(0, named=True)
    return (
        f"{row['trace']}: {row['requests']:,} requests over {row['span_s']:,.0f} s; a line that covers the peak takes "
        f"{row['provisioned']} instances, of which {row['used_share']:.1%} are used on average."
    )


@experiment(
    "lambdascale/fig1",
    title="How bursty is the load?",
    question="How far do peaks rise above the mean, and how much of what is provisioned for them stands idle?",
    backends=("analytic",),
    seconds={"analytic": 0.1},
    draw="demand.provisioned",
    panels=("rate", "minutes", "instances"),
    say=_say,
    matches=(Match(("mean arrival rate",), tolerance=0.02), Match(tolerance=0.005)),
)
def fig1(
    context: Context,
    *,
    trace: Annotated[
        str,
        Par(
            "Trace",
            trace=True,
            free=True,
            status="published",
            source="artifact test/trace_0.txt: half an hour of BurstGPT; the paper also shows a private trace",
        ),
    ] = BURST,
    window_s: Annotated[float, Par("Rate over windows of", "s", low=1, high=300, step=1, free=True)] = 10.0,
    service_s: Annotated[
        float,
        Par(
            "Time a request holds an instance",
            "s",
            low=0.1,
            high=60,
            log=True,
            free=True,
            source="serving takes 3 s in the artifact's simulation; the paper's line is not explained",
        ),
    ] = 3.0,
) -> dict[str, pl.DataFrame]:
    """Arrivals by window and by minute, instances they keep busy, and the flat line that covers the fullest window.

    A window of r requests a second keeps r times the service time instances busy (Little's law). Published numbers are
    those counted in the file of the artifact; other traces are drawn, not judged.
    """  # fmt: skip
    found = replayed(context, trace, published=(BURST,))
    arrival = found.requests["arrival_s"].to_numpy()
    statistics = arrival_statistics(arrival)
    if statistics is None:
        raise UserError(f"Trace {context.traces[0]} holds too few arrivals for rates; give one with three or more.")
    counts = np.bincount((arrival / window_s).astype(np.int64))
    minutes = np.bincount((arrival / 60).astype(np.int64))
    rate = counts / window_s
    needed = np.ceil(rate * service_s - 1e-9)
    provisioned, span = int(needed.max()), statistics.span_s
    group = -(-rate.size // SHOWN)  # of a long trace the fullest of every few windows is drawn
    starts = np.arange(0, rate.size, group)
    shown = pl.DataFrame(
        {
            "time_s": starts * window_s,
            "rate_per_s": np.maximum.reduceat(rate, starts),
            "instances": np.maximum.reduceat(needed, starts),
        }
    )
    by_minute = pl.DataFrame({"minute": np.arange(1, minutes.size + 1), "arrivals": minutes})
    summary = {
        "trace": context.traces[0], "requests": arrival.size, "span_s": span, "provisioned": provisioned,
        "used_share": arrival.size * service_s / span / provisioned,
    }  # fmt: skip
    known = [(MINUTE, place + 1, count, "1") for place, count in enumerate(minutes[:120].tolist())]
    known += [
        (PEAK, f"{width:g} s", statistics.at(width).peak_over_mean, "1")
        for width in WINDOWS_S
        if any(entry.window_s == width for entry in statistics.windows)
    ]
    known += [
        ("coefficient of variation of the gaps", "", statistics.gap_cv, "1"),
        ("arrivals", "", arrival.size, "1"),
        ("length of the trace", "", span, "s"),
        ("mean arrival rate", "", statistics.rate_per_s, "1/s"),
    ]
    if (surge := _surge(arrival)) is not None:
        known.append((SURGE, "", surge, "1"))
    return {
        "rate": shown,
        "minutes": by_minute.head(SHOWN),
        "provision": pl.DataFrame([summary]),
        "headline": headline(known),
    }


def _surge(arrival: np.ndarray) -> float | None:
    """Largest count of 10 s over the mean count of the five minutes before it, of which one arrival is the least."""
    counts = np.bincount((arrival / SURGE_S).astype(np.int64))
    before = BEFORE_S // SURGE_S
    if counts.size <= before:
        return None
    total = np.concatenate([[0], np.cumsum(counts)])
    usual = np.maximum(total[before:-1] - total[: -before - 1], 1) / before
    return float((counts[before:] / usual).max())
