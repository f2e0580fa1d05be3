"""Repeat a measurement within a time budget and keep its median and quartiles."""

import statistics
import time
from collections.abc import Callable
from typing import Literal

from workbench.errors import WorkbenchError
from workbench.records import Record

LEAST_RUNS = 3
MOST_RUNS = 2_000


class Measured(Record):
    """One measured quantity of this machine.

    Attributes:
        quantity: its name, which states the unit ("disk_read_bytes_per_s").
        median, low, high: median and quartiles over the runs.
        unit: SI unit.
        runs: number of runs.
        how: what exactly was done.
    """

    quantity: str
    median: float
    low: float
    high: float
    unit: Literal["bytes/s", "flop/s", "s", "1"]
    runs: int
    how: str


def repeat(
    quantity: str,
    unit: Literal["bytes/s", "flop/s", "s"],
    run: Callable[[], float],
    seconds: float,
    amount: float = 1.0,
    how: str = "",
) -> Measured:
    """Run something until its share of the time is spent, at least three times after one run that is not counted.

    Parameters:
        quantity, unit, how: what the row is called.
        run: does it once and gives the seconds it took.
        seconds: the time budget; it is overrun by one run at most, plus the least number of runs.
        amount: bytes or operations of one run; a rate is amount / seconds. For unit "s" the seconds themselves count.
    """
    start = time.perf_counter()
    run()
    values: list[float] = []
    while len(values) < LEAST_RUNS or (time.perf_counter() - start < seconds and len(values) < MOST_RUNS):
        took = run()
        if took <= 0:
            raise WorkbenchError(f"The clock did not move while {quantity} was measured; measure again with more time.")
        values.append(took if unit == "s" else amount / took)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Measured(quantity=quantity, median=median, low=low, high=high, unit=unit, runs=len(values), how=how)


def timed(call: Callable[[], object]) -> float:
    """Seconds one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
