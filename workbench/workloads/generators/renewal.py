"""Arrivals with independent gaps of any burstiness."""

from typing import Literal

import numpy as np

from workbench.records import Positive
from workbench.workloads.generators.process import ArrivalProcess, checked_count, renewal_marks


class GammaRenewal(ArrivalProcess):
    """Stationary renewal arrivals with gamma distributed gaps.

    Attributes:
        rate_per_s: mean rate.
        shape: 1/CV^2 of the gaps: 1 is Poisson, 0.5 is what the BurstGPT paper's own generator uses, larger than 1 is
            smoother than Poisson.
    """

    kind: Literal["gamma"] = "gamma"
    rate_per_s: Positive
    shape: Positive

    @property
    def mean_rate_per_s(self) -> float:
        return self.rate_per_s

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        total = self.rate_per_s * duration_s
        checked_count(total)
        return renewal_marks(total, self.shape, rng) / self.rate_per_s
