"""How arrivals spread over time: gaps, and counts in windows."""

import numpy as np

from workbench.records import Record

WINDOWS_S = (1.0, 10.0, 60.0)


class WindowStatistics(Record):
    """Arrival counts in windows of one width, rates per second.

    Windows start at the first arrival and the last, partial one is left out. The autocorrelation at lag L is
    sum((x_t - m)(x_{t+L} - m)) / sum((x_t - m)^2), NaN where there are not more than L windows.

    Attributes:
        window_s: width. windows: how many.
        mean_per_s, max_per_s, peak_over_mean, p99_over_mean: arrival rate over the windows.
        cv: standard deviation over mean of the counts. idc: index of dispersion, variance over mean of the counts.
        acf1, acf5, acf10: autocorrelation of the counts at that many windows.
        empty_share: share of windows without any arrival.
    """

    window_s: float
    windows: int
    mean_per_s: float
    max_per_s: float
    peak_over_mean: float
    p99_over_mean: float
    cv: float
    idc: float
    acf1: float
    acf5: float
    acf10: float
    empty_share: float


class ArrivalStatistics(Record):
    """The arrival process of one trace.

    Attributes:
        n: requests. span_s: from first to last. rate_per_s: gaps over span (n - 1 over span).
        gap_mean_s, gap_cv: mean and standard deviation over mean of the gaps between arrivals.
        zero_gaps: gaps of length zero.
        windows: counts in windows of 1, 10 and 60 s, as far as the span holds two of them.
    """

    n: int
    span_s: float
    rate_per_s: float
    gap_mean_s: float
    gap_cv: float
    zero_gaps: int
    windows: tuple[WindowStatistics, ...]

    def at(self, window_s: float) -> WindowStatistics:
        """The windows of one width."""
        return next(entry for entry in self.windows if entry.window_s == window_s)


def arrival_statistics(times_s: np.ndarray) -> ArrivalStatistics | None:
    """Statistics of sorted arrival times in seconds; None where there are fewer than three or no span."""
    if times_s.size < 3 or times_s[-1] <= times_s[0]:
        return None
    gaps = np.diff(times_s)
    span = float(times_s[-1] - times_s[0])
    return ArrivalStatistics(
        n=times_s.size,
        span_s=span,
        rate_per_s=(times_s.size - 1) / span,
        gap_mean_s=float(gaps.mean()),
        gap_cv=float(gaps.std(ddof=1) / gaps.mean()),
        zero_gaps=int((gaps == 0).sum()),
        windows=tuple(
            window_statistics(times_s, width) for width in WINDOWS_S if window_counts(times_s, width).size > 1
        ),
    )


def window_counts(times_s: np.ndarray, window_s: float) -> np.ndarray:
    """Arrivals in each whole window of `window_s` seconds, the first one starting with the first arrival.

    Windows are half-open but for the last, which includes its end (as the bins of `numpy.histogram`).

    >>> window_counts(np.array([5.0, 5.5, 6.5, 8.9, 9.1]), 1.0)
    array([2, 1, 0, 1])
    """
    offsets = times_s - times_s[0]
    windows = int(np.ceil(offsets[-1] / window_s)) - 1
    if windows < 1:
        return np.zeros(0, dtype=np.int64)
    inside = offsets[offsets <= windows * window_s]
    places = np.minimum((inside / window_s).astype(np.int64), windows - 1)
    return np.bincount(places, minlength=windows)


def window_statistics(times_s: np.ndarray, window_s: float) -> WindowStatistics:
    """Counts of sorted arrival times in windows of one width; at least two windows."""
    counts = window_counts(times_s, window_s).astype(float)
    mean, variance = float(counts.mean()), float(counts.var(ddof=1))
    return WindowStatistics(
        window_s=window_s,
        windows=counts.size,
        mean_per_s=mean / window_s,
        max_per_s=float(counts.max()) / window_s,
        peak_over_mean=float(counts.max()) / mean,
        p99_over_mean=float(np.quantile(counts, 0.99)) / mean,
        cv=variance**0.5 / mean,
        idc=variance / mean,
        acf1=autocorrelation(counts, 1),
        acf5=autocorrelation(counts, 5),
        acf10=autocorrelation(counts, 10),
        empty_share=float((counts == 0).mean()),
    )


def autocorrelation(series: np.ndarray, lag: int) -> float:
    """Autocorrelation of a series at one lag; NaN where it is too short or constant."""
    centred = series - series.mean()
    total = float(centred @ centred)
    if series.size <= lag or not total:
        return float("nan")
    return float(centred[:-lag] @ centred[lag:]) / total
