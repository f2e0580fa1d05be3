"""How long prompts and outputs are."""

import numpy as np

from workbench.records import Record

QUANTILES = (0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999)


class LengthStatistics(Record):
    """Token counts of one side of the requests.

    Quantiles by linear interpolation; standard deviations with one degree of freedom removed.

    Attributes:
        n: requests. zeros: those of length zero.
        mean, std, cv, min, max: of the lengths (cv = std / mean).
        p1 ... p99_9: quantiles.
        ln_mean, ln_std: mean and standard deviation of the natural logarithm over lengths above zero.
    """

    n: int
    zeros: int
    mean: float
    std: float
    cv: float
    min: float
    p1: float
    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    p95: float
    p99: float
    p99_9: float
    max: float
    ln_mean: float
    ln_std: float


def length_statistics(tokens: np.ndarray) -> LengthStatistics:
    """Statistics of an array of at least one token count."""
    lengths = np.asarray(tokens, dtype=float)
    logs = np.log(lengths[lengths > 0])
    mean, std = float(lengths.mean()), _std(lengths)
    names = ("p1", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9")
    quantiles = np.quantile(lengths, QUANTILES)
    return LengthStatistics(
        n=lengths.size,
        zeros=int((lengths == 0).sum()),
        mean=mean,
        std=std,
        cv=std / mean if mean else float("nan"),
        min=float(lengths.min()),
        max=float(lengths.max()),
        ln_mean=float(logs.mean()) if logs.size else float("nan"),
        ln_std=_std(logs),
        **dict(zip(names, quantiles.tolist(), strict=True)),
    )


def _std(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else float("nan")


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's correlation with mean ranks for ties; NaN where a side is constant.

    >>> round(rank_correlation(np.array([1, 2, 3, 4]), np.array([10, 10, 30, 20])), 4)
    0.7379
    """
    a, b = _mean_ranks(first), _mean_ranks(second)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else float("nan")


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
