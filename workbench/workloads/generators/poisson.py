"""Memoryless arrivals."""

from typing import Literal

import numpy as np

from workbench.workloads.generators.process import Rated, checked_count


class Poisson(Rated):
    """Poisson arrivals.

    Attributes:
        rate_per_s: mean rate.
        at_most_nominal: draw no more than int(rate * duration) arrivals and stop there, as Aegaeon's workload generator
            does (aegaeon/aegaeon/workload.py); the realised rate is then below the nominal one, at 6 expected arrivals
            by 16 %.
    """

    kind: Literal["poisson"] = "poisson"
    at_most_nominal: bool = False

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        nominal = checked_count(self.rate_per_s * duration_s)
        if self.at_most_nominal:
            times = np.cumsum(rng.exponential(1.0 / self.rate_per_s, nominal))
            return times[times < duration_s]
        return np.sort(rng.random(rng.poisson(self.rate_per_s * duration_s))) * duration_s
