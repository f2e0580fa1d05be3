"""A cluster that changed its size, as tables: who holds a place, every scale-out, states of rows."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from workbench.serving.model.lowered import Lowered, Outcome
from workbench.serving.model.scaled import DEAD, EMPTY, UP
from workbench.serving.policy.scalers import FIXED_TIER, IDEAL_TIER, RESIDENT_TIER, TIERS_BY_NUMBER

STATE_NAMES = ("empty", "starting", "up", "draining", "warm", "dead", "piped")


def held_row_s(lowered: Lowered, outcome: Outcome, span_s: float) -> float:
    """Seconds that all rows together were neither empty nor dead, from 0 to `span_s`."""
    time_s, _, old, new = state_changes(lowered, outcome)
    left_s = np.maximum(0.0, span_s - time_s)
    return float(((held(new) * 1 - held(old)) * left_s).sum())


def scaleouts(lowered: Lowered, outcome: Outcome, models: Sequence[str]) -> pl.DataFrame:
    """Every load of weights: `model, version, needed_s, detected_s, first_useful_s, alone_s, cancelled,
    requests_helped, bytes, instance, tier, sources, operation, piped_s, helping_s`.

    Detected is when the autoscaler decided; first useful is the first token of a request that began there, or before
    that the end of a step of another instance that it helped with while its weights came; alone is when the instance
    was up with all its weights; piped is when it began to serve in a pipeline, so that it may be useful before it is
    alone, and NaN if it did not; helping is when the first step began that it helped with, and NaN if there was none.
    Requests helped are those that finished there, and those whose first token came from a step that it helped with.
    Needed depends on a promise and is NaN here. Bytes are 0 where weights come by no path that is modelled, or never
    came whole.
    """
    start_s, end_s, row, tier, sources, operation, first_s, helped, piped_s = outcome.loads.T
    row, tier = row.astype(np.int64), tier.astype(np.int64)
    model = lowered.instances.model[row]
    begun_s, useful_s, more = _helping(outcome)
    moved = np.where(np.isin(tier, (IDEAL_TIER, FIXED_TIER, RESIDENT_TIER)) | np.isnan(end_s), 0.0, 1.0)
    return pl.DataFrame(
        {
            "model": pl.Series([models[m] for m in model], dtype=pl.String),
            "version": outcome.load_version if outcome.load_version.size else np.zeros(row.size, np.int64),
            "needed_s": np.full(row.size, np.nan),
            "detected_s": start_s,
            "first_useful_s": np.fmin(first_s, useful_s),
            "alone_s": end_s,
            "cancelled": np.isnan(end_s),
            "requests_helped": helped.astype(np.int64) + more,
            "bytes": moved * lowered.scaling.bytes[model] if lowered.scaling is not None else moved,
            "instance": row,
            "tier": pl.Series([TIERS_BY_NUMBER[t] for t in tier], dtype=pl.String),
            "sources": sources.astype(np.int64),
            "operation": operation.astype(np.int64),
            "piped_s": piped_s,
            "helping_s": begun_s,
        }
    )


def assists(outcome: Outcome) -> pl.DataFrame:
    """Steps that instances helped with while their own weights came: `start_s, end_s, helper, instance, iteration,
    layers`; no end where the step was lost or the run ended first. Half of all layers count at most."""
    start_s, end_s, *numbers = outcome.assists.T
    names = ("helper", "instance", "iteration", "layers")
    whole = {name: values.astype(np.int64) for name, values in zip(names, numbers, strict=True)}
    return pl.DataFrame({"start_s": start_s, "end_s": end_s, **whole})


def _helping(outcome: Outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each load, while its weights came: when the first step began that its row helped with, when the first one was
    over (float64[k], NaN where there was none), and the requests whose first token came from one (int64[k])."""
    begun_s, over_s = np.full((2, len(outcome.loads)), np.nan)
    requests = np.zeros(len(outcome.loads), np.int64)
    if len(outcome.assists):
        firsts = Counter(map(tuple, outcome.segments[outcome.segments[:, 1] == 0][:, 3:].tolist()))
    for k in range(len(requests)):
        start_s, end_s, row = outcome.loads[k, :3]
        if len(mine := outcome.assists[outcome.assists[:, 2] == row]):
            later_s = outcome.loads[k + 1 :][outcome.loads[k + 1 :, 2] == row, 0]
            until_s = min(np.inf if np.isnan(end_s) else end_s, later_s.min(initial=np.inf))
            during = mine[(mine[:, 0] >= start_s) & (mine[:, 0] < until_s)]
            ended = during[~np.isnan(during[:, 1])]
            begun_s[k] = during[0, 0] if len(during) else np.nan
            over_s[k] = ended[:, 1].min() if len(ended) else np.nan
            requests[k] = sum(firsts[tuple(step)] for step in ended[:, 3:5].astype(np.int64).tolist())
    return begun_s, over_s, requests


def state_rows(outcome: Outcome) -> tuple[np.ndarray, list[str], list[str], np.ndarray]:
    """Times, entities, kinds and values of the rows that a run's timeline has for changes of state."""
    time_s, row, state = outcome.states.T
    names = [f"instance {int(j)}" for j in row]
    return time_s.copy(), names, [STATE_NAMES[int(k)] for k in state], row.copy()


def state_changes(lowered: Lowered, outcome: Outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All changes of state in order, those from nothing to the state at time 0 first: time, row, old and new state."""
    n = lowered.instances.model.size
    if lowered.scaling is None:
        at_first, states = np.full(n, UP), _failures(lowered)
    else:
        at_first, states = lowered.scaling.start_state, outcome.states
    time_s = np.concatenate([np.zeros(n), states[:, 0]])
    row = np.concatenate([np.arange(n), states[:, 1].astype(np.int64)])
    new = np.concatenate([at_first, states[:, 2].astype(np.int64)])
    by_row = np.argsort(row, kind="stable")
    old = np.empty_like(new)
    old[by_row[1:]] = new[by_row[:-1]]
    old[:n] = EMPTY
    return time_s, row, old, new


def _failures(lowered: Lowered) -> np.ndarray:
    """Changes of state of instances that are always there."""
    failures = lowered.failures
    down = [(time_s, 1, j, DEAD) for time_s, j in zip(failures.time_s, failures.instance, strict=True)]
    back = [(time_s, 0, j, UP) for time_s, j in zip(failures.back_s, failures.instance, strict=True)]
    happened = sorted(change for change in down + back if change[0] <= lowered.until_s and change[0] < np.inf)
    return np.array([(time_s, j, state) for time_s, _, j, state in happened]).reshape(-1, 3)


def held(state: np.ndarray) -> np.ndarray:
    """Whether rows of such states hold their places."""
    return (state != EMPTY) & (state != DEAD)
