"""Fit a few coefficients to one half of the measurements, by the size of relative errors."""

from collections.abc import Callable, Sequence

import numpy as np

MOST_ROWS = 6000
"""Rows a fit looks at; of more, evenly spaced ones are taken."""

ROUNDS = 6
"""How often the search starts afresh from where it ended."""


def relative_fit(
    predict: Callable[[np.ndarray], np.ndarray], start: Sequence[float], seconds: np.ndarray
) -> np.ndarray:
    """Positive coefficients with the least mean |log(predicted / measured)|, by the simplex of Nelder and Mead.

    Parameters:
        predict: coefficients -> predicted seconds, one a measurement.
        start: a sensible guess; also the scale of each coefficient.
        seconds: what was measured.
    """
    from scipy.optimize import minimize

    scale, at, logarithm = np.asarray(start, dtype=float), np.ones(len(start)), np.log(seconds)

    def loss(relative: np.ndarray) -> float:
        return float(np.mean(np.abs(np.log(np.maximum(predict(np.abs(relative) * scale), 1e-12)) - logarithm)))

    for _ in range(ROUNDS):
        found = minimize(loss, at, method="Nelder-Mead", options={"maxiter": 500, "xatol": 1e-3, "fatol": 1e-5})
        at = found.x
    return np.abs(at) * scale


def thinned(count: int) -> np.ndarray:
    """Indices of at most `MOST_ROWS` evenly spaced rows."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_ROWS)).astype(int))
