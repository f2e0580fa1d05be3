"""Whether the arrivals of a trace are Poisson."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains.common import SUMMARY
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.catalogue.tracing import replayed

TRACE = "azure-code-2023"
SPREAD = "standard deviation over mean of the gaps"
WHOLE, FIRST, ROWS = "whole trace", "first 1000 rows", 1000
POINTS = 300


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    row = tables["gaps"].row(0, named=True)
    return (
        f"{row['trace']}: the gaps between {row['requests']:,} arrivals have a standard deviation of "
        f"{row['spread']:.4g} times their mean (Poisson: 1); the largest is {row['largest_s']:.4g} s."
    )


@experiment(
    "chains/arrivals-test",
    title="Are arrivals Poisson?",
    question="How do the gaps between arrivals of a trace differ from exponential ones?",
    backends=("analytic",),
    seconds={"analytic": 0.2},
    draw="chains_testbed.arrivals",
    panels=("gaps", "rate"),
    say=_say,
    matches=(Match(tolerance=0.005),),
)
def arrivals_test(
    context: Context,
    *,
    trace: Annotated[
        str,
        Par(
            "Trace", trace=True, status="published",
            source=f"{SUMMARY} §4.2.1: Azure LLM inference trace, code",
        ),
    ] = TRACE,
    window_s: Annotated[float, Par("Rate over windows of", "s", low=1, high=300, step=1, free=True)] = 10.0,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Distribution of gaps, and rate over time; counts of the whole trace and of its first 1,000 requests."""
    replay = replayed(context, trace, published=(TRACE,), least=3)
    requests = replay.requests
    arrival = requests["arrival_s"].to_numpy()
    gaps = np.diff(arrival)
    edges = np.arange(0.0, arrival[-1] + window_s, window_s)
    counts = np.histogram(arrival, np.append(edges, edges[-1] + window_s))[0]
    known = _counts(requests, WHOLE)
    if len(requests) > ROWS and arrival[ROWS - 1] > arrival[0]:
        known += _counts(requests.head(ROWS), FIRST)
    whole = {series: value for series, _, value, _ in known[: len(_counts(requests, WHOLE))]}
    row = {
        "trace": replay.origin.name,
        "requests": len(requests),
        "mean_s": float(gaps.mean()),
        "spread": whole[SPREAD],
        "largest_s": float(gaps.max()),
    }
    return {
        "gaps": pl.DataFrame([row]),
        "curve": _curve(gaps),
        "rate": pl.DataFrame({"time_s": edges, "rate_per_s": counts / window_s}),
        "headline": headline(known),
    }


def _curve(gaps: np.ndarray) -> pl.DataFrame:
    """Share of gaps that are longer than x, counted and exponential of the same mean."""
    longest = np.sort(gaps)
    x = np.geomspace(max(longest[longest > 0].min(initial=1e-3), 1e-3), max(longest[-1], 1e-2), POINTS)
    share = 1 - np.searchsorted(longest, x, "right") / longest.size
    return pl.DataFrame({"gap_s": x, "longer": share, "exponential": np.exp(-x / gaps.mean())})


def _counts(requests: pl.DataFrame, x: str) -> list[tuple[str, object, float, str]]:
    arrival, prompt, output = (requests[name].to_numpy() for name in ("arrival_s", "prompt_tokens", "output_tokens"))
    gaps, span = np.diff(arrival), float(arrival[-1] - arrival[0])
    rate = len(requests) / span
    known = [
        (SPREAD, x, float(gaps.std(ddof=1) / gaps.mean()), "1"),
        ("mean rate, counted", x, rate, "1/s"),
        ("mean input tokens, counted", x, float(prompt.mean()), "tokens"),
        ("mean output tokens, counted", x, float(output.mean()), "tokens"),
    ]
    if x == FIRST:
        per_second = np.bincount(np.floor(arrival - arrival[0]).astype(np.int64))
        return [
            *known,
            ("most arrivals in one second", x, int(per_second.max()), "1"),
            ("seconds with any arrival, about", x, int((per_second > 0).sum()), "1"),
        ]
    return [
        *known,
        ("mean rate", x, rate, "1/s"),
        ("mean input tokens", x, float(prompt.mean()), "tokens"),
        ("mean output tokens", x, float(output.mean()), "tokens"),
        ("requests", x, len(requests), "1"),
        ("length", x, span, "s"),
        ("median input tokens", x, float(np.median(prompt)), "tokens"),
        ("P95 input tokens", x, float(np.percentile(prompt, 95)), "tokens"),
        ("largest input", x, int(prompt.max()), "tokens"),
        ("median output tokens", x, float(np.median(output)), "tokens"),
        ("P95 output tokens", x, float(np.percentile(output, 95)), "tokens"),
        ("largest output", x, int(output.max()), "tokens"),
        ("largest gap", x, float(gaps.max()), "s"),
    ]
