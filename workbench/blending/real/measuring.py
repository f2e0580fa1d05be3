"""How matrix products and reading of memory disturb each other on this machine, for its own profile."""

import importlib.util
import statistics
import time

from workbench.blending.model.fitting import fit_slopes
from workbench.blending.real.job import COUNTS, LIMIT_S
from workbench.blending.real.overlap import operations
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.profiles.measure_gpu import gpu_count
from workbench.profiles.measure_timing import LEAST_RUNS, Measured

ROUNDS = 3
"""A fit takes the quickest of so many rounds of its readings."""


def measure_overlap(seconds: float) -> list[Measured]:
    """The slopes a and b of max(T_c + a T_m, T_m + b T_c), two rows; nothing without torch.

    Work runs in two streams of the first GPU, or in two threads where there is none. At least three times readings are
    made and fitted; median and quartiles are those of the fits.

    Parameters:
        seconds: time budget, overrun by one fit at most, or by what three fits take.

    Errors: `RunFailed` when the process that measures fails.
    """
    if importlib.util.find_spec("torch") is None:
        return []
    device = "cuda" if gpu_count() else "cpu"
    begun_s, fits = time.perf_counter(), []
    with Pool(1) as pool, pool.lease(1) as workers:
        while len(fits) < LEAST_RUNS or time.perf_counter() - begun_s < seconds:
            workers[0].give(operations, COUNTS, ROUNDS, device)
            fits.append(fit_slopes(*gather(workers, pool.beats, LIMIT_S)[0].T))
    where = "two streams of GPU 0" if device == "cuda" else "two threads, a processor each where there are two"
    error = statistics.median(fit.error for fit in fits)
    how = f"matrix products beside sums over memory, {where}; median error {error:.1%} on readings not fitted"
    rows = {
        "overlap_memory_slope": [fit.memory_slope for fit in fits],
        "overlap_compute_slope": [fit.compute_slope for fit in fits],
    }
    return [_row(name, values, how) for name, values in rows.items()]


def _row(name: str, values: list[float], how: str) -> Measured:
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Measured(quantity=name, median=median, low=low, high=high, unit="1", runs=len(values), how=how)
