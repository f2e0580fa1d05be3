"""Arrivals whose rate jumps between a few levels."""

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


class MarkovModulated(Levelled):
    """Markov-modulated Poisson arrivals.

    The state stays for an exponential time and then jumps to any other state with equal probability; it starts in a
    state drawn with its long-run probability.

    Attributes:
        rates_per_s: arrival rate in each state.
        stays_s: mean stay in each state.
        gap_shape: as in every process with levels.
    """

    kind: Literal["markov"] = "markov"
    lasting = "stays_s"
    stays_s: Annotated[tuple[Lasting, ...], Field(min_length=2)]

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        checked_count(max(self.rates_per_s) * duration_s)
        checked_pieces(duration_s / min(self.stays_s))
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


def on_off(on_rate_per_s: float, on_mean_s: float, off_mean_s: float) -> MarkovModulated:
    """Poisson arrivals at one rate during exponential on periods and none during exponential off periods.

    Parameters:
        on_rate_per_s: rate while on.
        on_mean_s, off_mean_s: mean lengths of the periods.
    """
    return MarkovModulated(rates_per_s=(on_rate_per_s, 0.0), stays_s=(on_mean_s, off_mean_s))
