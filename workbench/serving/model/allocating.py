"""Accelerators given to each model, and those that run a request, from each change on."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from workbench.serving.model.lowered import Lowered, Outcome
from workbench.serving.model.scaled import DRAINING, PIPED, UP
from workbench.serving.model.scaling_tables import held, state_changes

Changes = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Times, instances, and by how much something changes there."""


def allocation(lowered: Lowered, outcome: Outcome, models: Sequence[str], accelerators: int) -> pl.DataFrame:
    """`time_s, model, gpus_allocated, gpus_active`, one row for each instant and model at which either changes.

    Allocated are the accelerators of instances that start, serve, drain or stay warm, until the end of the run; active
    are those of instances that run a request, see `_stays`. The first row of each model is that of time 0.

    Parameters:
        lowered, outcome: the run.
        models: names in the order of their numbers.
        accelerators: of an instance.
    """
    end_s = end_of(lowered, outcome)
    schema = {"time_s": pl.Float64, "number": pl.Int64, "gpus_allocated": pl.Int64, "gpus_active": pl.Int64}
    zeros = np.zeros(len(models), np.int64)
    parts = [(np.zeros(len(models)), np.arange(len(models)), zeros, zeros)]
    for (time_s, row, change), active in (
        (_held_until(lowered, outcome, end_s), False),
        (_active_until(lowered, outcome, end_s), True),
    ):
        nothing = np.zeros_like(change)
        pair = (nothing, change) if active else (change, nothing)
        parts.append((time_s, lowered.instances.model[row], *pair))
    columns = (np.concatenate([part[k] for part in parts]) for k in range(len(schema)))
    table = pl.DataFrame(dict(zip(schema, columns, strict=True))).cast(schema).group_by("time_s", "number").sum()
    changed = (pl.col("gpus_allocated") != 0) | (pl.col("gpus_active") != 0) | (pl.col("time_s") == 0)
    name = pl.col("number").replace_strict(dict(enumerate(models)), return_dtype=pl.String)
    return (
        table.filter(changed)
        .sort("time_s", "number")
        .with_columns((pl.col("gpus_allocated", "gpus_active").cum_sum() * accelerators).over("number"))
        .select("time_s", name.alias("model"), "gpus_allocated", "gpus_active")
    )


def end_of(lowered: Lowered, outcome: Outcome) -> float:
    """When the clock stopped, or the last arrival or step where it ran to the end."""
    if np.isfinite(lowered.until_s):
        return float(lowered.until_s)
    times = (outcome.iteration_end_s, lowered.requests.arrival_s)
    return max(float(times_s.max(initial=0.0)) for times_s in times)


def _held_until(lowered: Lowered, outcome: Outcome, end_s: float) -> Changes:
    """When rows take their places and leave them; all leave at the end."""
    time_s, row, old, new = state_changes(lowered, outcome)
    return _ended(time_s, row, held(new) * 1 - held(old), lowered.instances.model.size, end_s)


def _active_until(lowered: Lowered, outcome: Outcome, end_s: float) -> Changes:
    """When instances begin to run requests, and when they run none any more."""
    time_s, row, old, new = state_changes(lowered, outcome)
    serving = (UP, DRAINING, PIPED)
    serves = _ended(time_s, row, np.isin(new, serving) * 1 - np.isin(old, serving), lowered.instances.model.size, end_s)
    instance, start_s, stop_s = _stays(lowered, outcome, end_s)
    times = np.concatenate([serves[0], start_s, stop_s])
    rows = np.concatenate([serves[1], instance, instance])
    order = np.lexsort((times, rows))
    up, busy = np.zeros(times.size, np.int64), np.repeat([0, 1, -1], [serves[0].size, start_s.size, stop_s.size])
    up[: serves[0].size] = serves[2]
    both = (np.cumsum(up[order]) > 0) & (np.cumsum(busy[order]) > 0)  # each row ends with none of either
    return times[order], rows[order], np.diff(both.astype(np.int64), prepend=0)


def _ended(time_s: np.ndarray, row: np.ndarray, change: np.ndarray, rows: int, end_s: float) -> Changes:
    """Changes up to an end, at which all that is left goes."""
    within = time_s <= end_s
    left = np.bincount(row[within], weights=change[within], minlength=rows).astype(np.int64)
    return (
        np.concatenate([time_s[within], np.full(rows, end_s)]),
        np.concatenate([row[within], np.arange(rows)]),
        np.concatenate([change[within], -left]),
    )


def _stays(lowered: Lowered, outcome: Outcome, end_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(instance, start, end) of the times at which requests run on instances, as far as these serve at all.

    A request runs on an instance from its admission until it is done there. Where it went on after its instance failed
    is told by its tokens; on the one that failed it ran until then, and on the other one, or on the same again, from
    then on. What it did before its first token on an instance that failed is not told.
    """
    out, rows = outcome, outcome.segments
    begin = out.iteration_at[rows[:, 3]] + rows[:, 4]
    first_s, last_s = out.iteration_end_s[begin], out.iteration_end_s[begin + rows[:, 2] - 1]
    request, instance, moved = rows[:, 0], rows[:, 3], out.moves[rows[:, 0]] > 0
    opens = np.diff(request, prepend=-1) != 0
    admitted_s = lowered.requests.arrival_s + out.wait_s
    start_s = np.where(opens, admitted_s[request], np.roll(last_s, 1))
    stop_s = last_s.copy()
    lost = np.flatnonzero(opens & moved)
    start_s[lost] = _from_failure(lowered, None, start_s[lost], first_s[lost])
    landed = np.flatnonzero(~opens & ~moved & (np.diff(instance, prepend=-1) != 0))
    start_s[landed] = _landing(out, request[landed], instance[landed], first_s[landed])
    again = np.flatnonzero(~opens & moved)
    start_s[again] = stop_s[again - 1] = _from_failure(lowered, instance[again - 1], last_s[again - 1], first_s[again])
    closes = np.append(opens[1:], True)[: len(rows)]
    stop_s[closes & np.isnan(out.finish_s[request]) & (out.instance[request] == instance) & ~moved] = end_s
    # Requests without any token stay from their admission on.
    silent = np.flatnonzero((out.made == 0) & ~np.isnan(out.wait_s) & (out.instance >= 0) & (out.moves == 0))
    finish_s = np.where(np.isnan(out.finish_s[silent]), end_s, out.finish_s[silent])
    return (
        np.concatenate([instance, out.instance[silent]]),
        np.concatenate([start_s, admitted_s[silent]]),
        np.concatenate([stop_s, finish_s]),
    )


def _from_failure(lowered: Lowered, instance: np.ndarray | None, after_s: np.ndarray, before_s: np.ndarray):
    """The first failure (of each instance's own place, where given) between two instants; the first of these if none.

    Parameters:
        instance: int64[k], or None for a failure of anything.
        after_s, before_s: float64[k].
    """
    found = after_s.copy()
    place = instance if lowered.scaling is None or instance is None else lowered.scaling.place[instance]
    for time_s, failing in zip(lowered.failures.time_s[::-1], lowered.failures.instance[::-1], strict=True):
        mine = True if place is None else place == failing
        found[mine & (after_s <= time_s) & (time_s <= before_s)] = time_s
    return found


def _landing(outcome: Outcome, request: np.ndarray, instance: np.ndarray, before_s: np.ndarray) -> np.ndarray:
    """When the KV of requests came to other instances; `before_s` where no transfer tells."""
    found = before_s.copy()
    at = {(r, j): k for k, (r, j) in enumerate(zip(request.tolist(), instance.tolist(), strict=True))}
    for _, end_s, r, _, target, _ in outcome.flows.tolist():
        if (int(r), int(target)) in at and end_s == end_s:
            found[at[int(r), int(target)]] = end_s
    return found
