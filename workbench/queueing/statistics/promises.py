"""Do intervals keep their word? Count how many hold a value that is known exactly."""

from collections.abc import Sequence

from workbench.errors import InputError
from workbench.queueing.checking import finite
from workbench.queueing.statistics.intervals import Interval
from workbench.records import Record

BAND = 0.99
"""Central share of the binomial distribution that an honest method is held to."""


class Coverage(Record):
    """How often intervals held the true value.

    Attributes:
        held, count: intervals that held it, of how many.
        promised: their confidence.
        band: smallest and largest share that an honest method shows, but for one in a hundred of such experiments.
        too_low, too_high: intervals that lie wholly below, and above, the true value.
    """

    held: int
    count: int
    promised: float
    band: tuple[float, float]
    too_low: int
    too_high: int

    @property
    def share(self) -> float:
        """Share of intervals that held the value."""
        return self.held / self.count

    @property
    def kept(self) -> bool:
        """Whether that share lies in the binomial band."""
        return self.band[0] <= self.share <= self.band[1]


def coverage(intervals: Sequence[Interval], true_value: float) -> Coverage:
    """Of many intervals from independent experiments, how many hold the true value, and is that as promised?

    Parameters:
        intervals: of one confidence.
        true_value: known exactly.

    Raises:
        InputError: no list of intervals, or intervals of several confidences.

    >>> sure = Interval(mean=1.0, half_width=0.5, confidence=0.95, count=10)
    >>> coverage([sure] * 95 + [Interval(mean=2.0, half_width=0.5, confidence=0.95, count=10)] * 5, 1.2).kept
    True
    """
    if not isinstance(intervals, Sequence) or not all(isinstance(each, Interval) for each in intervals):
        raise InputError("is no list of intervals", "give what student_interval or batch_means made", field="intervals")
    finite(true_value, "true_value")
    promises = {interval.confidence for interval in intervals}
    if len(promises) != 1:
        raise InputError(f"have {len(promises)} confidences", "give intervals of one confidence", field="intervals")
    from scipy.stats import binom

    count, promised = len(intervals), promises.pop()
    edges = binom.ppf([(1 - BAND) / 2, (1 + BAND) / 2], count, promised)
    return Coverage(
        held=sum(interval.holds(true_value) for interval in intervals),
        count=count,
        promised=promised,
        band=(float(edges[0]) / count, float(edges[1]) / count),
        too_low=sum(interval.high < true_value for interval in intervals),
        too_high=sum(interval.low > true_value for interval in intervals),
    )
