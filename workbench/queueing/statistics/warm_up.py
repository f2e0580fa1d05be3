"""How much of a run's start to throw away: it began empty, and the first customers met no queue."""

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import share, vector, whole
from workbench.queueing.kernels.warm_up import marginal_errors
from workbench.records import Record


class WarmUp(Record):
    """Where the settled part of a series begins.

    Attributes:
        dropped: how many values to leave out at the start.
        kept: how many remain.
        settled: False where the rule found its minimum at the last place it may look: the run is too short to tell.
    """

    dropped: int
    kept: int
    settled: bool

    def cut(self, series: np.ndarray) -> np.ndarray:
        """The settled part of a series as long as the one the rule looked at."""
        return series[self.dropped :]


def drop_share(values: int, part: float = 0.1) -> WarmUp:
    """Leave out a fixed share of the start, chosen before the run.

    Parameters:
        values: length of the series.
        part: share to leave out.

    >>> drop_share(1000).dropped
    100
    """
    count = whole(values, "values")
    dropped = int(count * share(part, "part"))
    return WarmUp(dropped=dropped, kept=count - dropped, settled=True)


def mser(series) -> WarmUp:
    """Leave out what disturbs the mean most: the MSER rule, MSER-5 with batches of five (White 1997).

    Of all starts in the first half it takes the one whose remaining mean has the least standard error, as if values
    were independent: sum of squared deviations over count squared, of batch means.

    Parameters:
        series: float[n] in order of time, at least two batches.

    Raises:
        InputError: fewer values than two batches hold.

    >>> import numpy as np
    >>> rising = np.concatenate([np.linspace(0, 10, 50), np.tile([9.0, 11.0, 10.0, 9.5, 10.5], 100)])
    >>> mser(rising)
    WarmUp(dropped=50, kept=500, settled=True)
    """
    numbers, size = vector(series, "series", least=-np.inf), 5
    count = numbers.size // size
    if count < 2:
        raise InputError(f"holds {numbers.size} values", f"give at least {2 * size}", field="series")
    means = numbers[: count * size].reshape(count, size).mean(axis=1)
    errors = np.empty(count // 2 + 1)
    marginal_errors(means, errors)
    best = int(np.argmin(errors))
    return WarmUp(dropped=best * size, kept=numbers.size - best * size, settled=best < errors.size - 1)
