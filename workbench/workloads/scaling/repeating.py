"""More load by sending each request's time several times."""

import numpy as np
import polars as pl

from workbench.records import whole
from workbench.workloads.generators.process import MOST
from workbench.workloads.handle import Trace
from workbench.workloads.scaling.cutting import inside
from workbench.workloads.scaling.reporting import changed


def repeat(trace: Trace, times: int, window: tuple[float, float] | None = None) -> Trace:
    """Repeat each stamp, and take lengths consecutively from the trace.

    The way of BlitzScale's artifact (blitz-serving/blitz-scale, scripts/figure/process_dataset_v2.py): stamps of a
    window are repeated, lengths are taken one after the other starting at the window's first request, running on beyond
    its end and from the start again when the trace is over. Bursts keep their width and become `times` as high;
    requests that share a stamp arrive at once.

    Parameters:
        trace: to scale.
        times: how often each stamp occurs, at least 1.
        window: (start_s, end_s) of the stamps to repeat, all by default.
    """
    times = whole(times, "times", 1, MOST // len(trace))
    chosen = np.arange(len(trace)) if window is None else inside(trace, *window)
    stamps = trace.requests["arrival_s"].to_numpy()[chosen]
    count = chosen.size * times
    sources = pl.Series((chosen[0] + np.arange(count)) % len(trace))
    requests = trace.requests[sources].with_columns(
        request_id=pl.Series(np.arange(count)), arrival_s=pl.Series(np.repeat(stamps - stamps[0], times))
    )
    parameters = {"times": times} | ({} if window is None else {"window_s": "{:g} to {:g}".format(*window)})
    return changed(trace, requests, "repeat", parameters, start_s=trace.origin.start_s + float(stamps[0]))
