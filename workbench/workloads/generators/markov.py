"""Arrivals whose rate jumps between a few levels."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from workbench.records import NotNegative, Positive
from workbench.workloads.generators.process import ArrivalProcess, checked_count, renewal_marks, through


class MarkovModulated(ArrivalProcess):
    """Markov-modulated Poisson arrivals.

    The state stays for an exponential time and then jumps to any other state with equal probability; it starts in a
    state drawn with its long-run probability.

    Attributes:
        rates_per_s: arrival rate in each state.
        stays_s: mean stay in each state.
        gap_shape: gamma shape of the gaps in units of the running rate, 1 for Poisson.
    """

    kind: Literal["markov"] = "markov"
    rates_per_s: Annotated[tuple[NotNegative, ...], Field(min_length=2)]
    stays_s: Annotated[tuple[Positive, ...], Field(min_length=2)]
    gap_shape: Positive = 1.0

    @model_validator(mode="after")
    def _fitting(self):
        if len(self.rates_per_s) != len(self.stays_s):
            raise ValueError("rates_per_s and stays_s must be equally long")
        if not any(self.rates_per_s):
            raise ValueError("rates_per_s must not all be zero")
        return self

    @property
    def mean_rate_per_s(self) -> float:
        stays = np.array(self.stays_s)
        return float(np.array(self.rates_per_s) @ stays / stays.sum())

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        checked_count(max(self.rates_per_s) * duration_s)
        edges_s, states = self._path(duration_s, rng)
        rates = np.array(self.rates_per_s)[states]
        total = float(rates @ np.diff(edges_s))
        if not total:
            return np.zeros(0)
        return through(renewal_marks(total, self.gap_shape, rng), edges_s, rates)

    def _path(self, duration_s: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the stays and their states; with equal jump probabilities the stays alone set the long run."""
        stays, states = np.array(self.stays_s), []
        state = int(rng.choice(stays.size, p=stays / stays.sum()))
        edges = [0.0]
        while edges[-1] < duration_s:
            states.append(state)
            edges.append(edges[-1] + rng.exponential(stays[state]))
            state = (state + 1 + int(rng.integers(stays.size - 1))) % stays.size
        return np.append(edges[:-1], duration_s), np.array(states)


def on_off(on_rate_per_s: float, on_mean_s: float, off_mean_s: float, gap_shape: float = 1.0) -> MarkovModulated:
    """Arrivals at one rate during exponential on periods and none during exponential off periods.

    Parameters:
        on_rate_per_s: rate while on.
        on_mean_s, off_mean_s: mean lengths of the periods.
        gap_shape: gamma shape of the gaps while on, 1 for Poisson.
    """
    return MarkovModulated(rates_per_s=(on_rate_per_s, 0.0), stays_s=(on_mean_s, off_mean_s), gap_shape=gap_shape)
