"""Which part of a long trace to use."""

from typing import Literal

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.records import positive, shown, whole
from workbench.workloads.handle import Trace

By = Literal["busiest", "burstiest", "representative"]
_ORDER: dict[str, tuple[str, bool]] = {
    "busiest": ("requests", True),
    "burstiest": ("idc", True),
    "representative": ("distance", False),
}


def windows(trace: Trace, length_s: float, by: By = "busiest", top: int = 10) -> pl.DataFrame:
    """Rank windows of a trace; none of those listed overlap.

    Parameters:
        trace: to look at.
        length_s: of the windows, a whole number of seconds; they start on whole seconds after the first arrival.
        by: busiest (most requests), burstiest (largest index of dispersion of the counts in 1 s) or representative
            (smallest `distance`: the sum of |ln| of the ratios window over trace of rate, dispersion, and mean prompt
            and output length).
        top: how many to list, at least 1.

    Returns:
        `start_s, end_s, requests, rate_per_s, rate_over_mean, peak_over_mean, cv, idc` (the last three of counts in
        1 s), `prompt_tokens_mean, output_tokens_mean, distance`.

    Raises:
        UserError: an unknown ranking, or a window longer than the trace.
    """
    if by not in _ORDER:
        raise UserError(f"Windows can be ranked by {', '.join(_ORDER)}, not by {by!r}.")
    length, top = _seconds(length_s), whole(top, "top", 1)
    times_s = trace.requests["arrival_s"].to_numpy()
    seconds = int(times_s[-1]) + 1
    if length > seconds:
        raise UserError(
            f"{trace.origin.name} lasts {times_s[-1]:.1f} s, so no window of {length} s fits; ask for a shorter one."
        )
    places = times_s.astype(np.int64)
    counts = np.bincount(places, minlength=seconds)
    prompt, output = (
        np.bincount(places, trace.requests[name].to_numpy()) for name in ("prompt_tokens", "output_tokens")
    )
    table = _table(counts, prompt, output, length)
    column, descending = _ORDER[by]
    chosen = _apart(table.sort(column, "start_s", descending=[descending, False], nulls_last=True), length, top)
    peaks = [int(counts[start : start + length].max()) for start in chosen["start_s"].cast(pl.Int64)]
    mean = chosen["requests"] / length
    return chosen.with_columns(peak_over_mean=pl.Series(peaks, dtype=pl.Float64) / mean).select(
        "start_s",
        "end_s",
        "requests",
        "rate_per_s",
        "rate_over_mean",
        "peak_over_mean",
        "cv",
        "idc",
        "prompt_tokens_mean",
        "output_tokens_mean",
        "distance",
    )


def _table(counts: np.ndarray, prompt: np.ndarray, output: np.ndarray, length: int) -> pl.DataFrame:
    """Every window that holds a request, by running sums over seconds."""
    requests, squares = _sums(counts, length), _sums(counts.astype(float) ** 2, length)
    used = requests > 0
    requests, squares = requests[used].astype(float), squares[used]
    mean = requests / length
    variance = (squares - requests * mean) / (length - 1)
    prompt_mean, output_mean = _sums(prompt, length)[used] / requests, _sums(output, length)[used] / requests
    whole_mean = counts.mean()
    ratios = (
        mean / whole_mean,
        variance / mean / (counts.var(ddof=1) / whole_mean),
        prompt_mean / (prompt.sum() / counts.sum()),
        output_mean / (output.sum() / counts.sum()),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = sum(np.abs(np.log(ratio)) for ratio in ratios)
    start = np.flatnonzero(used).astype(float)
    return pl.DataFrame(
        {
            "start_s": start,
            "end_s": start + length,
            "requests": requests.astype(np.int64),
            "rate_per_s": mean,
            "rate_over_mean": ratios[0],
            "cv": np.sqrt(np.maximum(variance, 0.0)) / mean,
            "idc": variance / mean,
            "prompt_tokens_mean": prompt_mean,
            "output_tokens_mean": output_mean,
            "distance": np.nan_to_num(distance, nan=np.inf),
        }
    )


def _sums(values: np.ndarray, length: int) -> np.ndarray:
    running = np.append(0, np.cumsum(values))
    return running[length:] - running[:-length]


def _apart(ranked: pl.DataFrame, length: int, top: int) -> pl.DataFrame:
    """The best windows that do not overlap, greedily."""
    starts = ranked["start_s"].to_numpy()
    free = np.ones(starts.size, dtype=bool)
    chosen: list[int] = []
    while len(chosen) < top and free.any():
        place = int(np.argmax(free))
        chosen.append(place)
        free &= np.abs(starts - starts[place]) >= length
    return ranked[chosen]


def _seconds(length_s: float) -> int:
    length = positive(length_s, "length_s")
    if length < 2 or length != int(length):
        raise InputError(f"is {shown(length_s)}", "give a whole number of seconds, at least 2", field="length_s")
    return int(length)
