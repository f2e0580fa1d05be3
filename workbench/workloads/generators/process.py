"""What every arrival process is: a record that draws sorted times in a span."""

from abc import abstractmethod

import numpy as np

from workbench.errors import InputError
from workbench.records import Asked

_MOST = 50_000_000


class ArrivalProcess(Asked):
    """A stationary or scripted way for requests to arrive."""

    @property
    @abstractmethod
    def mean_rate_per_s(self) -> float:
        """Long-run arrivals per second."""

    @abstractmethod
    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        """Sorted arrival times in [0, duration_s)."""


def checked_count(expected: float) -> int:
    """The expected number of arrivals as a whole number, refused where memory would not hold it."""
    if expected > _MOST:
        problem = f"{expected:,.0f} arrivals are expected, more than {_MOST:,}"
        raise InputError(problem, "shorten the duration or lower the rate", field="duration_s")
    return int(expected)


def renewal_marks(until: float, shape: float, rng: np.random.Generator) -> np.ndarray:
    """Marks in [0, until) of a stationary renewal process with unit-mean gamma gaps.

    Marks are drawn from far enough before 0 that the first gap is that of an ongoing process.
    """
    if shape == 1.0:
        return np.sort(rng.random(rng.poisson(until))) * until
    before = 50.0 / min(shape, 1.0)
    expected = until + before
    marks = np.zeros(1)
    while marks[-1] < expected:
        left = expected - marks[-1]
        more = checked_count(left + 6.0 * np.sqrt(left / shape) + 16)
        marks = np.append(marks, marks[-1] + np.cumsum(rng.gamma(shape, 1.0 / shape, more)))
    marks = marks[1:] - before
    return marks[(marks >= 0.0) & (marks < until)]


def through(marks: np.ndarray, edges_s: np.ndarray, rates_per_s: np.ndarray) -> np.ndarray:
    """Times at which the integral of a piecewise constant rate reaches each mark.

    Parameters:
        marks: sorted, in units of arrivals.
        edges_s: bounds of the pieces, one more than there are rates.
        rates_per_s: at least one above zero; time with rate zero is jumped over.
    """
    reached = np.append(0.0, np.cumsum(rates_per_s * np.diff(edges_s)))
    piece = np.clip(np.searchsorted(reached, marks, side="right") - 1, 0, rates_per_s.size - 1)
    return edges_s[piece] + (marks - reached[piece]) / rates_per_s[piece]
