"""How far a promise was kept, request by request."""

import numpy as np

from workbench.profiles import SLO
from workbench.serving import Run
from workbench.serving.kernels.gaps import fill_token_times
from workbench.serving.model.promises import kept_shares


def kept(run: Run, slo: SLO) -> tuple[np.ndarray, np.ndarray]:
    """How far the promise was kept for each request, by its own definition, and how much the request counts.

    Attainment is the mean of the first weighted by the second, float64[n] each.
    """
    out = run.outcome
    rows = np.ascontiguousarray(out.segments)
    at = np.concatenate([[0], np.cumsum(out.made)])
    tokens_s = np.empty(at[-1])
    fill_token_times(rows, out.iteration_end_s, out.iteration_at, at[rows[:, 0]], tokens_s)
    return kept_shares(run.lowered, out, tokens_s, at, slo, slo.definition)
