"""An interval from one long run: cut into batches so long that their means hardly depend on each other."""

import math

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import vector, whole
from workbench.queueing.statistics.intervals import Interval, student_interval
from workbench.records import Record


class BatchMeans(Record):
    """What the batches of one run say.

    Attributes:
        interval: Student interval over the batch means.
        batch: values in a batch.
        correlation: between neighbouring batch means, by von Neumann's ratio; above `correlation_limit` the interval is
            too narrow.
        correlation_limit: what independent batches exceed once in twenty times.
    """

    interval: Interval
    batch: int
    correlation: float
    correlation_limit: float

    @property
    def independent(self) -> bool:
        """Whether nothing speaks against taking the batches as independent."""
        return self.correlation <= self.correlation_limit


def batch_means(series, batches: int = 30) -> BatchMeans:
    """How sure is the mean of one run, whose values depend on their predecessors?

    Parameters:
        series: float[n] in order of time, warm-up left out; what does not fill the last batch is dropped.
        batches: how many; 20 to 30 is usual, fewer and longer ones are safer.

    Raises:
        InputError: fewer values than batches.

    >>> import numpy as np
    >>> found = batch_means(np.random.default_rng(1).normal(5.0, 1.0, 3000))
    >>> found.interval.holds(5.0), found.independent
    (True, True)
    """
    numbers, count = vector(series, "series", least=-math.inf), whole(batches, "batches", 2)
    size = numbers.size // count
    if size < 1:
        raise InputError(
            f"holds {numbers.size} values, fewer than {count} batches", "make a longer run", field="series"
        )
    means = numbers[: size * count].reshape(count, size).mean(axis=1)
    total = 2 * float(((means - means.mean()) ** 2).sum())
    steps = float((np.diff(means) ** 2).sum())
    return BatchMeans(
        interval=student_interval(means),
        batch=size,
        correlation=1 - steps / total if total else 0.0,
        correlation_limit=1.645 * math.sqrt((count - 2) / (count**2 - 1)),
    )
