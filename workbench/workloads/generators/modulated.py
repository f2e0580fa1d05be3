"""Arrivals whose rate swings, with pauses: the family that the stand-ins of real traces come from.

The rate is the product of a base rate, of lognormal swings with exponential memory (one per time scale), and of an
on/off pattern; within it gaps are gamma distributed in units of the running rate. Every part may be left out, which
gives Poisson, gamma renewal, on/off and doubly stochastic arrivals as special cases.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from workbench.records import Asked, NotNegative
from workbench.workloads.generators.process import (
    Lasting,
    Rated,
    Shape,
    checked_count,
    checked_pieces,
    renewal_marks,
    through,
)

Cv = Annotated[float, Field(ge=1e-3, le=1e3)]


class Swing(Asked):
    """A stationary lognormal swing of the rate.

    Attributes:
        cv: standard deviation over mean of the rate it causes.
        memory_s: time over which the correlation of its logarithm falls to 1/e.
    """

    cv: Cv
    memory_s: Lasting


class Pauses(Asked):
    """Alternating periods with and without arrivals.

    Attributes:
        on_mean_s, on_cv: gamma distributed on periods.
        off_least_s: shortest off period.
        off_mean_s, off_cv: lognormal off periods, of what exceeds the shortest.
    """

    on_mean_s: Lasting
    on_cv: Cv
    off_least_s: NotNegative = 0.0
    off_mean_s: Lasting
    off_cv: Cv

    @model_validator(mode="after")
    def _mean_above_least(self):
        if self.off_mean_s <= self.off_least_s:
            raise ValueError("off_mean_s must exceed off_least_s; raise it")
        return self


class Modulated(Rated):
    """Doubly stochastic arrivals with pauses.

    The integral of the rate over the drawn span is scaled to `rate_per_s` times the span, so that the number of
    arrivals varies between draws only by the gaps.

    Attributes:
        rate_per_s: mean rate, pauses included.
        gap_shape: gamma shape of the gaps in units of the running rate: 1 is Poisson, below 1 is burstier.
        swings: of the rate, multiplied.
        pauses: None for none.
    """

    kind: Literal["modulated"] = "modulated"
    gap_shape: Shape = 1.0
    swings: tuple[Swing, ...] = ()
    pauses: Pauses | None = None

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        total = self.rate_per_s * duration_s
        checked_count(total)
        edges_s = np.append(np.arange(0.0, duration_s, self._step_s(duration_s)), duration_s)
        if self.pauses:
            switches_s = switches(self.pauses, duration_s, rng)
            edges_s = np.union1d(edges_s, switches_s)
        middle_s, width_s = (edges_s[1:] + edges_s[:-1]) / 2, np.diff(edges_s)
        rates = np.ones(middle_s.size)
        for swing in self.swings:
            rates *= np.interp(middle_s, *swing_path(swing, duration_s, rng))
        if self.pauses:
            rates *= np.searchsorted(switches_s, middle_s, side="right") % 2 == 0
        area = float(rates @ width_s)
        if not area:  # the whole span is one pause
            return np.zeros(0)
        rates *= total / area
        return through(renewal_marks(total, self.gap_shape, rng), edges_s, rates)

    def _step_s(self, duration_s: float) -> float:
        finest = min((swing.memory_s / 8 for swing in self.swings), default=duration_s)
        return max(finest, duration_s / 1_000_000)


def switches(pauses: Pauses, duration_s: float, rng: np.random.Generator) -> np.ndarray:
    """Instants at which arrivals stop and start in turn; arrivals are on before the first.

    A span starts with the start of an on period, as traces do.
    """
    cycles = 2 * checked_pieces(duration_s / (pauses.on_mean_s + pauses.off_mean_s)) + 64
    shape = pauses.on_cv**-2
    on = rng.gamma(shape, pauses.on_mean_s / shape, cycles)
    excess, variance = pauses.off_mean_s - pauses.off_least_s, np.log1p(pauses.off_cv**2)
    off = pauses.off_least_s + excess * np.exp(np.sqrt(variance) * rng.standard_normal(cycles) - variance / 2)
    instants = np.cumsum(np.column_stack([on, off]).ravel())
    return instants[instants < duration_s]


def swing_path(swing: Swing, duration_s: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A drawn path of the swing: instants and factors of mean about 1.

    The logarithm is a stationary Gaussian process with correlation exp(-t / memory), drawn by its spectrum on a grid of
    an eighth of the memory, over a span padded so that its end does not know its beginning.
    """
    step_s = max(swing.memory_s / 8, duration_s / 1_000_000)
    points = int(np.ceil(duration_s / step_s)) + 2
    padded = points + int(np.ceil(8 * swing.memory_s / step_s))
    lags = np.minimum(np.arange(padded), padded - np.arange(padded))
    spectrum = np.maximum(np.fft.rfft(np.exp(-lags * step_s / swing.memory_s)).real, 0.0)
    noise = np.fft.rfft(rng.standard_normal(padded))
    path = np.fft.irfft(noise * np.sqrt(spectrum), padded)[:points]
    variance = np.log1p(swing.cv**2)
    return np.arange(points) * step_s, np.exp(np.sqrt(variance) * path - variance / 2)
