"""Who was harmed while a cluster grew: gaps between tokens of requests that ran already, beside all other gaps."""

from typing import NamedTuple

import numpy as np

from workbench.serving import Run
from workbench.serving.kernels.gaps import fill_token_times


class Gaps(NamedTuple):
    """Gaps between tokens, float64 each: those of requests that ran already while an instance was started, the rest."""

    during_s: np.ndarray
    outside_s: np.ndarray


def gaps_around_scale_outs(run: Run) -> Gaps:
    """Gaps of requests that ran already when a scale-out of their model began and that overlap it, and all others.

    A request runs from its first token on; a scale-out lasts from the decision until the instance is up, or, where it
    never came up, until the run ends.
    """
    times_s, request = _token_times(run)
    inner = np.flatnonzero(request[1:] == request[:-1])
    gap_s, start_s, end_s = times_s[inner + 1] - times_s[inner], times_s[inner], times_s[inner + 1]
    first_s, loads = run.outcome.first_token_s[request[inner]], run.outcome.loads
    model = run.lowered.requests.model[request[inner]]
    of_load = run.lowered.instances.model[loads[:, 2].astype(np.int64)]
    during = np.zeros(inner.size, bool)
    for m in np.unique(of_load):
        mine, spans = np.flatnonzero(model == m), loads[of_load == m, :2]
        ends_s = np.where(np.isnan(spans[:, 1]), np.inf, spans[:, 1])
        during[mine] = _overlapped(spans[:, 0], ends_s, first_s[mine], start_s[mine], end_s[mine])
    return Gaps(gap_s[during], gap_s[~during])


def _token_times(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Times of all tokens, request after request, and whose each is."""
    out = run.outcome
    begin = np.cumsum(out.made) - out.made
    times_s = np.empty(int(out.made.sum()))
    fill_token_times(out.segments, out.iteration_end_s, out.iteration_at, begin[out.segments[:, 0]], times_s)
    return times_s, np.repeat(np.arange(out.made.size), out.made)


def _overlapped(
    begins_s: np.ndarray, ends_s: np.ndarray, from_s: np.ndarray, start_s: np.ndarray, end_s: np.ndarray
) -> np.ndarray:
    """Which spans from `start_s` to `end_s` overlap one of (begins_s, ends_s) that begins at `from_s` or later.

    Parameters:
        begins_s, ends_s: float64[k], by beginning.
        from_s, start_s, end_s: float64[g].
    """
    low, high = np.searchsorted(begins_s, from_s), np.searchsorted(begins_s, end_s)
    some = np.flatnonzero(low < high)
    # The largest end of the spans low to high - 1, by two stretches whose lengths are powers of two.
    latest = [ends_s]
    while 2 ** len(latest) <= ends_s.size:
        half = 2 ** (len(latest) - 1)
        latest.append(np.maximum(latest[-1][:-half], latest[-1][half:]))
    level = np.log2(high[some] - low[some]).astype(np.int64)
    found = np.zeros(from_s.size, bool)
    for power in np.unique(level).tolist():
        these = some[level == power]
        reach_s = np.maximum(latest[power][low[these]], latest[power][high[these] - 2**power])
        found[these] = reach_s > start_s[these]
    return found
