"""The same run over and over, each on random numbers of its own."""

from collections.abc import Callable, Mapping

import numpy as np

from workbench.errors import WorkbenchError
from workbench.queueing.checking import whole
from workbench.queueing.statistics.intervals import Interval, student_interval
from workbench.records import Record

Seed = int | np.random.SeedSequence


class Replications(Record):
    """What independent runs gave.

    Attributes:
        seed: the number all of them come from; replication i is child i of it.
        values: for each quantity one number a run.
    """

    seed: int
    values: Mapping[str, tuple[float, ...]]

    def interval(self, quantity: str = "value", confidence: float = 0.95) -> Interval:
        """Mean and Student interval of one quantity over the runs."""
        return student_interval(self.values[quantity], confidence)


def replication_seeds(seed: int, replications: int) -> list[np.random.SeedSequence]:
    """Independent seeds, the first ones the same however many are asked for."""
    return [np.random.SeedSequence(seed, spawn_key=(run,)) for run in range(whole(replications, "replications"))]


def replicate(
    run: Callable[[np.random.SeedSequence], float | Mapping[str, float]], replications: int, seed: int
) -> Replications:
    """Run something several times, each time with a seed of its own.

    Parameters:
        run: takes a seed, gives a number (kept as "value") or several by name, the same names every time.
        replications: how many runs.
        seed: the number all their seeds come from.

    >>> import numpy as np
    >>> coin = lambda seed: np.random.default_rng(seed).random()
    >>> replicate(coin, 3, seed=1).values == replicate(coin, 3, seed=1).values
    True
    """
    rows = []
    for child in replication_seeds(seed, replications):
        found = run(child)
        rows.append(found if isinstance(found, Mapping) else {"value": found})
        if rows[-1].keys() != rows[0].keys():
            raise WorkbenchError(
                f"Replication {len(rows)} gave {sorted(rows[-1])} where the first gave {sorted(rows[0])}."
            )
    return Replications(seed=seed, values={name: tuple(float(row[name]) for row in rows) for name in rows[0]})
