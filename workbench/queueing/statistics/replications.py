"""The same run over and over, each on random numbers of its own."""

from collections.abc import Callable, Mapping

import numpy as np

from workbench.errors import InputError, WorkbenchError
from workbench.queueing.checking import levels
from workbench.queueing.statistics.intervals import Interval, student_interval
from workbench.records import Record
from workbench.workloads.generators.streams import root_of

MOST_REPLICATIONS = 1_000_000
"""Replications whose seeds are still made at once."""


class Replications(Record):
    """What independent runs gave.

    Attributes:
        seed: the number all of them come from; replication i is child i of it.
        values: for each quantity one number a run.
    """

    seed: int
    values: Mapping[str, tuple[float, ...]]

    def interval(self, quantity: str = "value") -> Interval:
        """Mean and 95 % Student interval of one quantity over the runs."""
        return student_interval(self.values[quantity])


def replication_seeds(seed: int, replications: int) -> list[np.random.SeedSequence]:
    """Independent seeds, the first ones the same however many are asked for."""
    root, count = root_of(seed), levels(replications, "replications", most=MOST_REPLICATIONS)
    return [np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, run)) for run in range(count)]


def replicate(
    run: Callable[[np.random.SeedSequence], float | Mapping[str, float]], replications: int, seed: int
) -> Replications:
    """Run something several times, each time with a seed of its own.

    Parameters:
        run: takes a seed, gives a number (kept as "value") or several by name, the same names every time.
        replications: how many runs.
        seed: the number all their seeds come from.

    Raises:
        InputError: `run` is no function. WorkbenchError: a run gave other names than the first one.

    >>> import numpy as np
    >>> coin = lambda seed: np.random.default_rng(seed).random()
    >>> replicate(coin, 3, seed=1).values == replicate(coin, 3, seed=1).values
    True
    """
    if not callable(run):
        raise InputError(f"is a {type(run).__name__}", "give a function of a seed", field="run")
    rows = []
    for child in replication_seeds(seed, replications):
        found = run(child)
        rows.append(found if isinstance(found, Mapping) else {"value": found})
        if rows[-1].keys() != rows[0].keys():
            raise WorkbenchError(
                f"Replication {len(rows)} gave {sorted(rows[-1])} where the first gave {sorted(rows[0])}."
            )
    return Replications(seed=seed, values={name: tuple(float(row[name]) for row in rows) for name in rows[0]})
