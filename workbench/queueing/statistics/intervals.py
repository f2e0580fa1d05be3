"""A mean with the interval that independent repetitions give it."""

import math
from collections.abc import Sequence

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import share, vector
from workbench.records import Record


class Interval(Record):
    """A confidence interval of a mean.

    Attributes:
        mean: of the values.
        half_width: half of the interval.
        confidence: share of such intervals that hold the true mean, were the values independent and normal.
        count: how many values.
    """

    mean: float
    half_width: float
    confidence: float
    count: int

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width

    @property
    def relative(self) -> float:
        """Half width over the size of the mean; infinite around 0."""
        return self.half_width / abs(self.mean) if self.mean else math.inf

    def holds(self, value: float) -> bool:
        """Whether a value lies inside."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half_width:.2g} ({self.confidence:.0%}, n = {self.count})"


def student_interval(values, confidence: float = 0.95) -> Interval:
    """Between which values does the true mean lie, judging by independent values of about normal spread (Student)?

    Parameters:
        values: float[n], n >= 2: means of replications or of long batches, not the correlated waits of one run.
        confidence: share of such intervals that should hold the true mean.

    Raises:
        InputError: a single value, or a confidence that is no share between 0 and 1.

    >>> str(student_interval([4.0, 5.0, 6.0]))
    '5 ± 2.5 (95%, n = 3)'
    """
    numbers = vector(values, "values", least=-math.inf)
    share(confidence, "confidence")
    if numbers.size < 2:
        raise InputError("holds a single number", "an interval takes at least two repetitions", field="values")
    from scipy.special import stdtrit

    spread = float(np.std(numbers, ddof=1)) / math.sqrt(numbers.size)
    return Interval(
        mean=float(numbers.mean()),
        half_width=float(stdtrit(numbers.size - 1, (1 + confidence) / 2)) * spread,
        confidence=confidence,
        count=numbers.size,
    )


def ends_over_runs(values: Sequence[float]) -> tuple[float, float] | None:
    """Ends of the 95 % Student interval over replications, None where a single run or one without a number gives none.

    Parameters:
        values: one number a replication, NaN or infinite where a run has none.

    >>> ends_over_runs([2.0, 2.0]), ends_over_runs([2.0])
    ((2.0, 2.0), None)
    """
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    interval = student_interval(values)
    return interval.low, interval.high
