"""The paper's linear seconds of a job on a server, fitted to readings: τc + m (t_o + t_I n_in + t_O (n_out - 1))."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import vector
from workbench.records import shown

UNKNOWN = 4


class ComputeFit(NamedTuple):
    """Seconds of a job that m blocks of a server compute.

    Attributes:
        job_s: of the job itself, whatever is computed (τc of a server that is not far away).
        block_s, prompt_s, token_s: of a block, and there of a token of the prompt and of every further token but the
            first one out (t_o, t_I, t_O).
    """

    job_s: float
    block_s: float
    prompt_s: float
    token_s: float

    def seconds(self, jobs) -> np.ndarray:
        """Seconds of each job, jobs int[n, 3] of blocks, tokens in and tokens out."""
        return _columns(jobs) @ np.array(self)


def fit_compute(jobs, seconds) -> ComputeFit:
    """Least squares on relative errors, no part below 0.

    Parameters:
        jobs: int[n, 3], blocks, tokens in and tokens out; n at least 4.
        seconds: float64[n], above 0.

    Errors: `InputError` for fewer jobs than unknown numbers, and for seconds that are not above 0.
    """
    from scipy.optimize import nnls

    columns, taken = _columns(jobs), vector(seconds, "seconds")
    if len(columns) < UNKNOWN or taken.shape != (len(columns),):
        remedy = f"give at least {UNKNOWN} jobs, and seconds of each"
        raise InputError(f"are {taken.size} for {len(columns)} jobs", remedy, field="seconds")
    if not (taken > 0).all():
        raise InputError("are not all above 0", "give what each job took", field="seconds")
    return ComputeFit(*nnls(columns / taken[:, None], np.ones(len(columns)))[0].tolist())


def straightness(x, y) -> float:
    """R² of the straight line through points by least squares: 1 where they lie on one.

    Parameters:
        x, y: float64[n], n at least 2, x not all equal, nor y.

    Raises:
        InputError: other numbers than these.
    """
    x, y = vector(x, "x", -np.inf), vector(y, "y", -np.inf)
    if x.size != y.size:
        raise InputError(f"holds {y.size} numbers for {x.size} places", "give one each", field="y")
    for name, values in (("x", x), ("y", y)):
        if np.ptp(values) == 0:
            raise InputError("draws no line", "give numbers that are not all equal", field=name)
    missed = y - np.polyval(np.polyfit(x, y, 1), x)
    return float(1 - (missed**2).sum() / ((y - y.mean()) ** 2).sum())


def _columns(jobs) -> np.ndarray:
    rows = None
    with suppress(TypeError, ValueError):
        rows = np.asarray(jobs, float)
    if rows is None or rows.ndim != 2 or rows.shape[1] != 3 or not np.isfinite(rows).all():
        raise InputError(f"are {shown(jobs)}", "give blocks, tokens in and tokens out of each job", field="jobs")
    blocks, tokens_in, tokens_out = rows.T
    return np.column_stack([np.ones_like(blocks), blocks, blocks * tokens_in, blocks * (tokens_out - 1)])
