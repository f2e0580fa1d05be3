"""Compute and memory time step by step, thinned for drawing."""

import numpy as np
import polars as pl

from workbench.blending.model.costs import StepSeconds


def binned(seconds: StepSeconds, bins: int, last: int | None = None) -> pl.DataFrame:
    """Means over stretches of equal length: `step` (the middle), `compute_s`, `memory_s`, `step_s`, `ratio`.

    Parameters:
        bins: how many stretches.
        last: how many steps to cover from the first on, all by default.
    """
    last = len(seconds.step_s) if last is None else min(last, len(seconds.step_s))
    edges = np.unique(np.linspace(0, last, min(bins, last) + 1).astype(np.int64))
    counts = np.diff(edges)
    columns = {
        name: np.add.reduceat(getattr(seconds, name)[:last], edges[:-1]) / counts
        for name in ("compute_s", "memory_s", "step_s")
    }
    table = pl.DataFrame({"step": (edges[:-1] + edges[1:] - 1) / 2, **columns})
    return table.with_columns(ratio=pl.col("compute_s") / pl.col("memory_s"))
