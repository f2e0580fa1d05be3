"""Stand-ins fitted to the user's own traces.

Pauses, lengths and prefix reuse are measured; the swings of the rate and the shape of the gaps, which no formula gives,
are searched for: a few draws are made for each trial and their statistics laid beside those of the trace.
"""

import numpy as np

from workbench.errors import UserError
from workbench.workloads.generators.lengths import Pair
from workbench.workloads.generators.modulated import Modulated, Pauses, Swing
from workbench.workloads.generators.prefixes import SharedPrefixes
from workbench.workloads.generators.sides import Quantiles
from workbench.workloads.generators.streams import stream
from workbench.workloads.handle import Trace
from workbench.workloads.ranking import windows
from workbench.workloads.scaling.cutting import cut
from workbench.workloads.stand_ins import StandIn
from workbench.workloads.statistics.likeness import arrival_measures, distance

_LONGEST_S, _HOUR_S = 7200.0, 3600
_PAUSE_GAPS = 13.0
"""A gap counts as a pause from this many mean gaps on; of memoryless arrivals one gap in 400,000 is as long."""

_LEAST_PAUSES, _LEAST_PAUSED_SHARE = 5, 0.05
_MEMORIES_S = (3.0, 40.0, 400.0)
_DRAWS = 5
_STEPS = (2.0, 1.5, 1.25, 1.1)
_STARTS = ((1.0, 0.1, 0.1, 0.1), (0.5, 0.6, 0.4, 0.2), (0.2, 0.2, 0.2, 0.2))
"""Gap shape and cv of the swings: a calm process, one with bursts inside bursts, one with clustered gaps."""

_LEAST_CV = 0.03
_SHARES = (0.0, 0.005, 0.01, 0.025, *(round(0.05 * k, 2) for k in range(1, 20)), 0.975, 0.99, 0.995, 0.999, 1.0)
_MATCHED = ("gap_cv", "cv_", "peak_over_mean_", "acf1_", "requests")


def fit(trace: Trace) -> StandIn:
    """The recipe of a stand-in for a trace: parameters that can be read, kept, and drawn from with other seeds.

    It is named like the trace, with `-like` behind it.

    Traces of more than two hours are fitted on their most representative hour.

    Parameters:
        trace: at least 50 requests with arrival times.

    Returns:
        A `StandIn`; `fit(trace).trace(seed=1)` draws a trace that resembles the given one in what `targets` lists.

    Raises:
        UserError: fewer than 50 requests, or no span.
    """
    if trace.requests["arrival_s"][-1] > _LONGEST_S:
        best = windows(trace, _HOUR_S, by="representative", top=1)
        trace = cut(trace, best["start_s"][0], best["end_s"][0])
    times_s = trace.requests["arrival_s"].to_numpy()
    if times_s.size < 50 or times_s[-1] <= 0:
        raise UserError(
            f"{trace.origin.name} has {times_s.size} requests over {times_s[-1]:.1f} s; a fit needs 50 with times."
        )
    measures = arrival_measures(times_s)
    targets = {key: value for key, value in measures.items() if key.startswith(_MATCHED) and np.isfinite(value)}
    found = trace.statistics
    reuse = found.prefixes if trace.origin.block_tokens else None
    return StandIn(
        name=f"{trace.origin.name}-like",
        like=trace.origin.title,
        duration_s=float(times_s[-1]),
        arrivals=_arrivals(times_s, targets),
        lengths=Pair(
            prompt=quantile_table(trace.requests["prompt_tokens"].to_numpy()),
            output=quantile_table(trace.requests["output_tokens"].to_numpy()),
            rank_correlation=_rounded(float(np.nan_to_num(found.length_rank_correlation))),
        ),
        prefixes=reuse
        and SharedPrefixes(block_tokens=trace.origin.block_tokens, hit_share=_rounded(reuse.ideal_hit_share)),
        targets={key: _rounded(value) for key, value in targets.items()},
        close_enough=0.08,
        candidates=40,
        basis=f"fitted to {trace.origin.title}",
    )


def quantile_table(tokens: np.ndarray) -> Quantiles:
    """A side's distribution as 28 quantiles by linear interpolation; lengths of zero count as one."""
    values = np.quantile(np.maximum(tokens, 1), _SHARES)
    return Quantiles(shares=_SHARES, tokens=tuple(_rounded(value) for value in values.tolist()))


def pauses_of(times_s: np.ndarray) -> Pauses | None:
    """On and off periods, split at gaps of 13 mean gaps; None where pauses are few or short in all."""
    gaps = np.diff(times_s)
    least_s = _PAUSE_GAPS * float(gaps.mean())
    breaks = np.flatnonzero(gaps > least_s)
    off_s = gaps[breaks]
    if breaks.size < _LEAST_PAUSES or off_s.sum() < _LEAST_PAUSED_SHARE * times_s[-1]:
        return None
    on_s = times_s[np.append(breaks, times_s.size - 1)] - times_s[np.append(0, breaks + 1)]
    excess_s = off_s - least_s
    return Pauses(
        on_mean_s=_rounded(float(on_s.mean())),
        on_cv=_rounded(max(float(on_s.std(ddof=1) / on_s.mean()), _LEAST_CV)),
        off_least_s=_rounded(least_s),
        off_mean_s=_rounded(float(off_s.mean())),
        off_cv=_rounded(max(float(excess_s.std(ddof=1) / excess_s.mean()), _LEAST_CV)),
    )


def _arrivals(times_s: np.ndarray, targets: dict[str, float]) -> Modulated:
    """Search the cv of each swing and the gap shape, one after the other, in ever smaller steps."""
    span_s, pauses = float(times_s[-1]), pauses_of(times_s)
    memories_s = [memory_s for memory_s in _MEMORIES_S if memory_s < span_s / 4]

    def process(values: list[float]) -> Modulated:
        swings = zip(values[1:], memories_s, strict=True)
        return Modulated(
            rate_per_s=_rounded(times_s.size / span_s),
            gap_shape=_rounded(values[0]),
            swings=tuple(Swing(cv=_rounded(cv), memory_s=memory_s) for cv, memory_s in swings if cv >= _LEAST_CV),
            pauses=pauses,
        )

    def missed(values: list[float]) -> float:
        drawn = [arrival_measures(process(values).times(span_s, stream(0, "choice", draw))) for draw in range(_DRAWS)]
        typical = {key: float(np.median([entry.get(key, np.nan) for entry in drawn])) for key in targets}
        return distance(typical, targets)

    best, point = min((missed(start), start) for start in ([*s[: len(memories_s) + 1]] for s in _STARTS))
    for step in _STEPS:
        for place in range(len(point)):
            for factor in (step, 1.0 / step):
                while (now := missed(trial := _moved(point, place, factor))) < best:
                    point, best = trial, now
    return process(point)


def _moved(point: list[float], place: int, factor: float) -> list[float]:
    moved = list(point)
    moved[place] = float(np.clip(moved[place] * factor, 0.01, 20.0))
    return moved


def _rounded(value: float) -> float:
    """Four digits: more would claim a precision that a fit does not have."""
    return float(f"{value:.4g}")
