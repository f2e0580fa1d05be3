"""Arrivals whose rate follows a script."""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from workbench.workloads.generators.process import (
    Lasting,
    Levelled,
    checked_count,
    checked_pieces,
    renewal_marks,
    through,
)


class PiecewisePoisson(Levelled):
    """Nonhomogeneous Poisson (or gamma) arrivals with a piecewise constant rate, repeated when the span is longer.

    Attributes:
        lengths_s: length of each piece.
        rates_per_s: rate in each piece.
        gap_shape: as in every process with levels.
    """

    kind: Literal["piecewise"] = "piecewise"
    lasting = "lengths_s"
    lengths_s: Annotated[tuple[Lasting, ...], Field(min_length=1)]

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        checked_pieces(len(self.lengths_s) * duration_s / sum(self.lengths_s))
        rounds = math.ceil(duration_s / sum(self.lengths_s))
        edges_s = np.append(0.0, np.cumsum(np.tile(self.lengths_s, rounds)))
        pieces = min(int(np.searchsorted(edges_s, duration_s)), edges_s.size - 1)  # rounding may end them too early
        edges_s = np.append(edges_s[:pieces], duration_s)
        rates = np.tile(self.rates_per_s, rounds)[:pieces]
        total = float(rates @ np.diff(edges_s))
        checked_count(total)
        return through(renewal_marks(total, self.gap_shape, rng), edges_s, rates) if total else np.zeros(0)
