"""GPUs given to each model and GPUs at work, from each change on."""

import numpy as np
import polars as pl

from workbench.serving import Run


def allocation_table(run: Run, models: list[str], tp: int) -> pl.DataFrame:
    """`time_s, model, gpus_allocated, gpus_active`, one row for each instant and model at which either changes.

    An instance is allocated from the first arrival to the end of the run, but for the time it is down; it is active
    from the admission of a request until it has none left.

    Parameters:
        run: what happened.
        models: of each instance.
        tp: accelerators of an instance.
    """
    names = list(dict.fromkeys(models))
    number = np.array([names.index(name) for name in models], dtype=np.int64)
    out, failures = run.outcome, run.lowered.failures
    end_s = run.lowered.until_s
    if not np.isfinite(end_s):
        end_s = max(
            float(times_s.max(initial=0.0)) for times_s in (out.iteration_end_s, run.lowered.requests.arrival_s)
        )
    instance, start_s, stop_s = active_intervals(run, end_s)
    back_s = np.minimum(failures.back_s, end_s)
    down = failures.time_s < end_s
    moments = [
        (np.zeros(number.size), number, 1, 0),
        (failures.time_s[down], number[failures.instance[down]], -1, 0),
        (back_s[down], number[failures.instance[down]], 1, 0),
        (np.full(number.size, end_s), number, -1, 0),
        (start_s, number[instance], 0, 1),
        (stop_s, number[instance], 0, -1),
    ]
    changes = pl.concat(
        pl.DataFrame({"time_s": time_s, "model": model}).with_columns(
            allocated=pl.lit(allocated, dtype=pl.Int64), active=pl.lit(active, dtype=pl.Int64)
        )
        for time_s, model, allocated, active in moments
    )
    totals = changes.group_by("time_s", "model").agg(pl.col("allocated", "active").sum()).sort("time_s", "model")
    return totals.select(
        (pl.col("time_s") + run.start_s).alias("time_s"),
        pl.col("model").replace_strict(dict(enumerate(names)), return_dtype=pl.String),
        gpus_allocated=tp * pl.col("allocated").cum_sum().over("model"),
        gpus_active=tp * pl.col("active").cum_sum().over("model"),
    )


def active_intervals(run: Run, end_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(instance, start, end) of the times at which an instance runs at least one request, none overlapping."""
    out, requests = run.outcome, run.lowered.requests
    admitted = ~np.isnan(out.wait_s) & (out.instance >= 0)
    starts = (requests.arrival_s + out.wait_s)[admitted]
    ends = np.where(np.isnan(out.finish_s), end_s, out.finish_s)[admitted]
    instances = out.instance[admitted]
    if (elsewhere := out.moves[admitted] > 0).any():
        # What a request that lost its instance did before is told by its tokens; its stay counts from the first there.
        rows = out.segments
        begin = out.iteration_at[rows[:, 3]] + rows[:, 4]
        first_s, last_s = out.iteration_end_s[begin], out.iteration_end_s[begin + rows[:, 2] - 1]
        moved = out.moves[rows[:, 0]] > 0
        starts = np.concatenate([starts[~elsewhere], first_s[moved]])
        ends = np.concatenate([ends[~elsewhere], last_s[moved]])
        instances = np.concatenate([instances[~elsewhere], rows[moved, 3]])
    order = np.lexsort((starts, instances))
    starts, ends, instances = starts[order], ends[order], instances[order]
    if not starts.size:
        return instances, starts, ends
    edges = np.flatnonzero(np.diff(instances)) + 1
    reach = np.concatenate([np.maximum.accumulate(part) for part in np.split(ends, edges)])
    first = np.concatenate([[True], (instances[1:] != instances[:-1]) | (starts[1:] > reach[:-1])])
    last = np.concatenate([first[1:], [True]])
    return instances[first], starts[first], reach[last]
