"""Arrivals of which the count in every window is known."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from workbench.records import ZeroOrMore
from workbench.workloads.generators.process import MOST, ArrivalProcess, Lasting, Shape


class Counted(ArrivalProcess):
    """Arrivals of which the count in every window is known, and the first and last instant.

    Within a window the arrivals lie like those of a gamma renewal process given their number: gaps are a Dirichlet
    sample.

    Attributes:
        counts: arrivals in each window.
        window_s: width of a window.
        span_s: from the first arrival (at 0) to the last.
        gap_shape: gamma shape of the gaps inside a window.
    """

    kind: Literal["counted"] = "counted"
    counts: Annotated[tuple[ZeroOrMore, ...], Field(min_length=1)]
    window_s: Lasting
    span_s: Lasting
    gap_shape: Shape

    @model_validator(mode="after")
    def _fitting(self):
        least, most = (len(self.counts) - 1) * self.window_s, len(self.counts) * self.window_s
        if not least < self.span_s <= most or not self.counts[0] or not self.counts[-1]:
            raise ValueError("span_s must end in the last window, and the first and last window need an arrival")
        if len(self.counts) == 1 and self.counts[0] == 1:
            raise ValueError("one arrival cannot be both at 0 and at span_s; count at least two")
        if self.total > MOST:
            raise ValueError(f"there are {self.total:,} arrivals, more than {MOST:,}; count fewer")
        return self

    @property
    def total(self) -> int:
        """Arrivals in all windows."""
        return sum(self.counts)

    @property
    def mean_rate_per_s(self) -> float:
        """Arrivals a second from the first to the last."""
        return self.total / self.span_s

    def times(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        parts, last = [], len(self.counts) - 1
        for place, count in enumerate(self.counts):
            gaps = rng.gamma(self.gap_shape, 1.0, count + 1)
            gaps[0] *= place > 0
            gaps[-1] *= place < last
            if not gaps.any():  # so bursty that every gap is below the smallest number: one of them takes all
                gaps[rng.integers(place == 0, gaps.size - (place == last))] = 1.0
            start_s = place * self.window_s
            width_s = min(self.window_s, self.span_s - start_s)
            parts.append(start_s + np.cumsum(gaps)[:-1] / gaps.sum() * width_s)
        times = np.concatenate(parts)
        return times[times < duration_s] if duration_s < self.span_s else times
