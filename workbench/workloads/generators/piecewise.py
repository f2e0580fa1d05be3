"""Arrivals whose rate follows a script."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from workbench.records import NotNegative, Positive
from workbench.workloads.generators.process import ArrivalProcess, checked_count, renewal_marks, through


class PiecewisePoisson(ArrivalProcess):
    """Nonhomogeneous Poisson (or gamma) arrivals with a piecewise constant rate, repeated when the span is longer.

    Attributes:
        lengths_s: length of each piece.
        rates_per_s: rate in each piece.
        gap_shape: gamma shape of the gaps in units of the running rate, 1 for Poisson.
    """

    kind: Literal["piecewise"] = "piecewise"
    lengths_s: Annotated[tuple[Positive, ...], Field(min_length=1)]
    rates_per_s: Annotated[tuple[NotNegative, ...], Field(min_length=1)]
    gap_shape: Positive = 1.0

    @model_validator(mode="after")
    def _fitting(self):
        if len(self.lengths_s) != len(self.rates_per_s):
            raise ValueError("lengths_s and rates_per_s must be equally long")
        if not any(self.rates_per_s):
            raise ValueError("rates_per_s must not all be zero")
        return self

    @property
    def mean_rate_per_s(self) -> float:
        lengths = np.array(self.lengths_s)
        return float(np.array(self.rates_per_s) @ lengths / lengths.sum())

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        rounds = int(np.ceil(duration_s / sum(self.lengths_s)))
        edges_s = np.append(0.0, np.cumsum(np.tile(self.lengths_s, rounds)))
        pieces = int(np.searchsorted(edges_s, duration_s))
        edges_s = np.append(edges_s[:pieces], duration_s)
        rates = np.tile(self.rates_per_s, rounds)[:pieces]
        total = float(rates @ np.diff(edges_s))
        checked_count(total)
        return through(renewal_marks(total, self.gap_shape, rng), edges_s, rates) if total else np.zeros(0)
