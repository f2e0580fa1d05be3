"""Arrivals with independent gaps of any burstiness."""

from typing import Literal

import numpy as np

from workbench.workloads.generators.process import Rated, Shape, checked_count, renewal_marks


class GammaRenewal(Rated):
    """Stationary renewal arrivals with gamma distributed gaps.

    Attributes:
        rate_per_s: mean rate.
        shape: 1/CV^2 of the gaps: 1 is Poisson, 0.5 is what the BurstGPT paper's own generator uses, larger than 1 is
            smoother than Poisson.
    """

    kind: Literal["gamma"] = "gamma"
    shape: Shape

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        total = self.rate_per_s * duration_s
        checked_count(total)
        return renewal_marks(total, self.shape, rng) / self.rate_per_s
