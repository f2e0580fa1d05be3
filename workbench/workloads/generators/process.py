"""What every arrival process is: a record that draws sorted times in a span."""

import math
from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from workbench.errors import InputError
from workbench.records import Asked

MOST = 50_000_000
"""Requests in one trace, and arrivals drawn at once; beyond that memory would not hold them."""

_MOST_PIECES = 5_000_000

Rate = Annotated[float, Field(ge=0, le=1e9)]
MeanRate = Annotated[float, Field(ge=1e-12, le=1e9)]
Lasting = Annotated[float, Field(ge=1e-9, le=1e12)]
Shape = Annotated[float, Field(ge=1e-4, le=1e6)]
"""Gamma shape of gaps: 1 is Poisson, 1/CV^2 in general, so from a CV of 100 down to one of 0.001."""


class ArrivalProcess(Asked):
    """A stationary or scripted way for requests to arrive."""

    @property
    @abstractmethod
    def mean_rate_per_s(self) -> float:
        """Long-run arrivals per second."""

    @property
    def total(self) -> float:
        """Arrivals that there are in all: infinite unless the process ends."""
        return math.inf

    @abstractmethod
    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        """Sorted arrival times in [0, duration_s)."""


class Rated(ArrivalProcess):
    """A process that is told its mean rate.

    Attributes:
        rate_per_s: mean rate.
    """

    rate_per_s: MeanRate

    @property
    def mean_rate_per_s(self) -> float:
        return self.rate_per_s


class Levelled(ArrivalProcess):
    """A process whose rate is piecewise constant.

    Attributes:
        rates_per_s: arrival rate at each level.
        gap_shape: gamma shape of the gaps in units of the running rate, 1 for Poisson.
    """

    lasting: ClassVar[str]
    """Name of the field that says how long each level lasts."""

    rates_per_s: tuple[Rate, ...]
    gap_shape: Shape = 1.0

    @model_validator(mode="after")
    def _fitting(self):
        if len(self.rates_per_s) != len(getattr(self, self.lasting)):
            raise ValueError(f"rates_per_s and {self.lasting} must be equally long; give one rate for each")
        if not any(self.rates_per_s):
            raise ValueError("rates_per_s must not all be zero; raise one")
        return self

    @property
    def mean_rate_per_s(self) -> float:
        lasting_s = np.array(getattr(self, self.lasting))
        return float(np.array(self.rates_per_s) @ lasting_s / lasting_s.sum())


def checked_count(expected: float) -> int:
    """The expected number of arrivals as a whole number, refused where memory would not hold it."""
    if not expected <= MOST:
        problem = f"{_read(expected)} arrivals are expected, more than {MOST:,}"
        raise InputError(problem, "shorten the duration or lower the rate", field="duration_s")
    return int(expected)


def checked_pieces(pieces: float) -> int:
    """How often the rate changes in the span, rounded up and refused where it would take for ever to follow."""
    if not pieces <= _MOST_PIECES:
        problem = f"the rate changes {_read(pieces)} times in the span, more than {_MOST_PIECES:,}"
        raise InputError(problem, "shorten the duration or let each rate last longer", field="duration_s")
    return math.ceil(pieces)


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


def _read(count: float) -> str:
    """A count as people read it: written out as long as that can be read."""
    return f"{count:,.0f}" if count < 1e12 else f"{count:.3g}"
