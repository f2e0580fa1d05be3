"""GPUs given to each model and GPUs at work, from each change on."""

import numpy as np
import polars as pl

from workbench.serving import Run


def allocation_table(run: Run, models: list[str], tp: int) -> pl.DataFrame:
    """`time_s, model, gpus_allocated, gpus_active`, one row for each instant and model at which either changes.

    Allocated are the GPUs of instances that are there, as the engine tells (`Run.allocation`), until the end of the
    run; active are those of instances that run a request, from its admission until none is left.

    Parameters:
        run: what happened.
        models: of each instance.
        tp: accelerators of an instance.
    """
    end_s = run.lowered.until_s
    if not np.isfinite(end_s):
        happened = (run.outcome.iteration_end_s, run.lowered.requests.arrival_s)
        end_s = max(float(times_s.max(initial=0.0)) for times_s in happened)
    held = run.allocation.with_columns(pl.col("gpus_allocated") // run.accelerators * tp).filter(
        pl.col("time_s") <= end_s + run.start_s
    )
    last = held.group_by("model", maintain_order=True).agg(
        pl.lit(end_s + run.start_s).alias("time_s"), change=-pl.col("gpus_allocated").last()
    )
    taken = held.select(
        "time_s", "model", change=pl.col("gpus_allocated").diff().over("model").fill_null(pl.col("gpus_allocated"))
    )
    instance, start_s, stop_s = active_intervals(run, end_s)
    names = pl.Series(models, dtype=pl.String).gather(instance)
    parts = [
        table.select("time_s", "model", allocated=pl.col("change").cast(pl.Int64), active=pl.lit(0, dtype=pl.Int64))
        for table in (taken, last)
    ]
    parts += [
        pl.DataFrame({"time_s": times_s + run.start_s, "model": names}).with_columns(
            allocated=pl.lit(0, dtype=pl.Int64), active=pl.lit(tp * sign, dtype=pl.Int64)
        )
        for times_s, sign in ((start_s, 1), (stop_s, -1))
    ]
    totals = pl.concat(parts).group_by("time_s", "model").agg(pl.col("allocated", "active").sum())
    return totals.sort("time_s", "model").select(
        "time_s",
        "model",
        gpus_allocated=pl.col("allocated").cum_sum().over("model"),
        gpus_active=pl.col("active").cum_sum().over("model"),
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
