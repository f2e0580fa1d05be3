"""Arrivals by day and hour of day."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from workbench.workloads.generators.piecewise import PiecewisePoisson
from workbench.workloads.generators.process import ArrivalProcess, Rate, Shape, checked_pieces


class Calendar(ArrivalProcess):
    """Arrivals by day and hour of day.

    Attributes:
        per_day: expected arrivals of each day; later days start over.
        hour_weights: 24 relative weights of the hours of a day.
        gap_shape: gamma shape of the gaps in units of the running rate.
    """

    kind: Literal["calendar"] = "calendar"
    per_day: Annotated[tuple[Rate, ...], Field(min_length=1)]
    hour_weights: Annotated[tuple[Rate, ...], Field(min_length=24, max_length=24)]
    gap_shape: Shape = 1.0

    @model_validator(mode="after")
    def _something_arrives(self):
        for name in ("per_day", "hour_weights"):
            if not any(getattr(self, name)):
                raise ValueError(f"{name} must not all be zero; raise one")
        return self

    @property
    def mean_rate_per_s(self) -> float:
        """Arrivals a second over the days that are given."""
        return sum(self.per_day) / len(self.per_day) / 86_400

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        checked_pieces(duration_s / 3600.0)
        shares = np.array(self.hour_weights) / sum(self.hour_weights) / 3600.0
        rates = np.outer(self.per_day, shares).ravel()
        script = PiecewisePoisson(
            lengths_s=(3600.0,) * rates.size, rates_per_s=tuple(rates.tolist()), gap_shape=self.gap_shape
        )
        return script.times(duration_s, rng)
