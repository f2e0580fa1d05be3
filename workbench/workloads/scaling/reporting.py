"""The trace after a change of its arrivals, with burstiness before and after on record."""

import numpy as np
import polars as pl

from workbench.workloads.handle import Trace
from workbench.workloads.origin import Burstiness, Transformation
from workbench.workloads.statistics.arrivals import WINDOWS_S, arrival_statistics, window_counts, window_statistics


def changed(trace: Trace, requests: pl.DataFrame, name: str, parameters: dict[str, object], **origin: object) -> Trace:
    """A trace with other requests.

    Parameters:
        trace: before.
        requests: after, sorted, the first at 0.
        name, parameters: what was done.
        origin: fields of the origin that differ too.
    """
    before, after = (table["arrival_s"].to_numpy() for table in (trace.requests, requests))
    step = Transformation(
        name=name,
        parameters={key: f"{value:g}" if isinstance(value, float) else str(value) for key, value in parameters.items()},
        rate_before_per_s=_rate(before),
        rate_after_per_s=_rate(after),
        before=burstiness(before),
        after=burstiness(after),
    )
    return trace.model_copy(update={"requests": requests, "origin": trace.origin.changed(step, **origin)})


def burstiness(times_s: np.ndarray) -> tuple[Burstiness, ...]:
    """Peak over mean and CV of sorted arrival times at 1, 10 and 60 s."""
    rows = []
    for width in WINDOWS_S:
        found = window_statistics(times_s, width) if window_counts(times_s, width).size > 1 else None
        rows.append(Burstiness(window_s=width, peak_over_mean=found and found.peak_over_mean, cv=found and found.cv))
    return tuple(rows)


def _rate(times_s: np.ndarray) -> float | None:
    found = arrival_statistics(times_s)
    return found and found.rate_per_s
