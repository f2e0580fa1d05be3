"""A part of a trace."""

import math
from contextlib import suppress
from numbers import Real

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.records import shown
from workbench.workloads.handle import Trace
from workbench.workloads.scaling.reporting import changed


def cut(trace: Trace, start_s: float, end_s: float) -> Trace:
    """Keep the requests that arrive in [start_s, end_s); the first of them becomes time 0.

    Parameters:
        trace: to cut.
        start_s, end_s: seconds after the trace's first arrival.

    Raises:
        UserError: when no request arrives in between.
    """
    chosen = inside(trace, start_s, end_s)
    part = trace.requests[int(chosen[0]) : int(chosen[-1]) + 1]
    return _part(trace, part, "cut", {"start_s": float(start_s), "end_s": float(end_s)})


def of_rows(trace: Trace, start: int, stop: int) -> Trace:
    """Keep the requests from `start` (the first is 0) to before `stop`, by arrival."""
    part = trace.requests[start:stop]
    if not part.height:
        raise UserError(f"{trace.origin.name} has {len(trace):,} requests, none from {start} to {stop}.")
    return _part(trace, part, "rows", {"start": start, "stop": stop})


def _part(trace: Trace, part: pl.DataFrame, name: str, parameters: dict[str, object]) -> Trace:
    first_s = float(part["arrival_s"][0])
    requests = part.with_columns(pl.col("arrival_s") - first_s)
    return changed(trace, requests, name, parameters, start_s=trace.origin.start_s + first_s)


def inside(trace: Trace, start_s: float, end_s: float) -> np.ndarray:
    """Places of the requests that arrive in [start_s, end_s); at least one."""
    start_s, end_s = (_bound(value, name) for value, name in ((start_s, "start_s"), (end_s, "end_s")))
    bounds = np.searchsorted(trace.requests["arrival_s"].to_numpy(), [start_s, end_s], side="left")
    if bounds[0] >= bounds[1]:
        last_s = float(trace.requests["arrival_s"][-1])
        raise UserError(
            f"No request of {trace.origin.name} arrives from {start_s:g} s to {end_s:g} s; "
            f"its requests arrive from 0 to {last_s:.1f} s, so choose another window."
        )
    return np.arange(bounds[0], bounds[1])


def _bound(value: float, name: str) -> float:
    """Seconds at which a window starts or ends; infinite for no bound."""
    bound = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            bound = float(value)
    if math.isnan(bound):
        raise InputError(f"is {shown(value)}", "give seconds after the first arrival", field=name)
    return bound
