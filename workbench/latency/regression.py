"""Linear fits of measured times: coefficients of 0 or more, by the size of relative errors, and how they generalise."""

import numpy as np

_ROUNDS = 60
_FLOOR = 1e-4


def nonnegative_fit(columns: np.ndarray, seconds: np.ndarray, least: np.ndarray | None = None) -> np.ndarray:
    """Coefficients x ≥ least with the least sum of |columns x / seconds - 1|.

    Least absolute errors by reweighted non-negative least squares (Lawson and Hanson), so that a few odd measurements
    do not decide.

    Parameters:
        columns: float64 (measurements, coefficients).
        seconds: float64 (measurements,), all above 0.
        least: float64 (coefficients,), 0 by default.

    >>> nonnegative_fit(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 4.0]]), np.array([3.0, 5.0, 9.0])).round(6).tolist()
    [1.0, 2.0]
    """
    from scipy.optimize import nnls

    floor = np.zeros(columns.shape[1]) if least is None else np.asarray(least, dtype=float)
    relative = columns / seconds[:, None]
    target = 1.0 - relative @ floor
    scale = np.abs(relative).mean(axis=0)
    scale[scale == 0] = 1.0
    weights, found = np.ones(len(seconds)), np.zeros(len(floor))
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        found, _ = nnls(*_reduced(relative / scale * root[:, None], target * root), maxiter=50 * len(floor))
        weights = 1.0 / np.maximum(np.abs(relative / scale @ found - target), _FLOOR)
    return floor + found / scale


def _reduced(matrix: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same least squares with as many rows as unknowns and one more: of long tables, the triangle of their QR."""
    if len(target) <= 1000:
        return matrix, target
    triangle = np.linalg.qr(np.column_stack([matrix, target]), mode="r")
    return triangle[:, :-1], triangle[:, -1]


def held_out(
    columns: np.ndarray, seconds: np.ndarray, groups: np.ndarray, least: np.ndarray | None = None
) -> np.ndarray:
    """Each measurement as predicted by a fit to all other groups; NaN where those are too few to fit.

    Parameters:
        columns, seconds, least: as in `nonnegative_fit`.
        groups: (measurements,), what is left out together.
    """
    predicted = np.full(len(seconds), np.nan)
    for group in np.unique(groups):
        kept = groups != group
        if kept.sum() > columns.shape[1]:
            fitted = nonnegative_fit(columns[kept], seconds[kept], least)
            predicted[~kept] = columns[~kept] @ fitted
    return predicted


def independent(columns: np.ndarray) -> np.ndarray:
    """Which columns the measurements tell apart from those before them, bool (coefficients,)."""
    kept: list[int] = []
    sizes = np.linalg.norm(columns, axis=0)
    for index in range(columns.shape[1]):
        if sizes[index] == 0:
            continue
        chosen = columns[:, [*kept, index]] / sizes[[*kept, index]]
        if np.linalg.matrix_rank(chosen, tol=1e-6 * np.sqrt(len(columns))) == len(kept) + 1:
            kept.append(index)
    return np.isin(np.arange(columns.shape[1]), kept)
