"""Jobs that arrive at chains: drawn from distributions, or taken from a trace."""

from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.chains.model.hardware import work_of
from workbench.errors import InputError
from workbench.queueing import Distribution, draw_customers
from workbench.queueing.checking import MOST_CUSTOMERS, levels, vector
from workbench.records import of_type
from workbench.workloads.generators.streams import Seed, stream


class JobList(NamedTuple):
    """Who arrives when, and wants how much.

    Attributes:
        arrival_s: float64[n], in order.
        work: float64[n, F], in the units that chains state their seconds for: sizes of mean 1 (F = 1), or 1, tokens in,
            tokens out but the first (F = 3).
        draw: float64[n, 2], uniform numbers for policies that break ties at random.
    """

    arrival_s: np.ndarray
    work: np.ndarray
    draw: np.ndarray

    def first(self, count: int) -> "JobList":
        """The first of them."""
        return JobList(self.arrival_s[:count], self.work[:count], self.draw[:count])


def draw_jobs(gaps: Distribution, sizes: Distribution, count: int, seed: Seed) -> JobList:
    """Draw jobs with independent gaps and sizes; a job of size x takes x T on a chain whose mean service is T.

    Gaps, sizes and the numbers that break ties come from streams of their own, so that every policy and every fleet
    meets the same jobs.

    Parameters:
        gaps: seconds between arrivals; exponential for Poisson arrivals.
        sizes: without unit, with mean 1 by convention.
        count, seed: how many, and of which seed.
    """
    customers = draw_customers(gaps, sizes, levels(count, "count", 1, MOST_CUSTOMERS), seed)
    return JobList(customers.arrival_s, customers.service_s[:, None], _draws(count, seed))


def jobs_of_requests(requests: pl.DataFrame, seed: Seed = 0) -> JobList:
    """The requests of a trace as jobs of work (1, tokens in, tokens out but the first).

    Parameters:
        requests: `arrival_s, prompt_tokens, output_tokens`, as `trace.requests` has them.
        seed: of the numbers that break ties.

    Raises:
        InputError: no table, one without these columns, or arrivals that are not in order.
    """
    of_type(requests, pl.DataFrame, "requests")
    for name in ("arrival_s", "prompt_tokens", "output_tokens"):
        if name not in requests.columns:
            raise InputError("is no column of the requests", "give a request table, such as trace.requests", field=name)
    work = work_of(requests["prompt_tokens"].to_numpy(), requests["output_tokens"].to_numpy())
    return JobList(arrivals(requests["arrival_s"].to_numpy()), work, _draws(requests.height, seed))


def sized_jobs(arrival_s, sizes, seed: Seed = 0) -> JobList:
    """Given arrivals and sizes as jobs, one size each.

    Parameters:
        arrival_s: float64[n], seconds, in order. sizes: float64[n], 1 for the mean job.
        seed: of the numbers that break ties.

    Raises:
        InputError: unequal lengths, arrivals out of order, or a size that cannot be.
    """
    instants, work = arrivals(arrival_s), vector(sizes, "sizes")
    if work.size != instants.size:
        raise InputError(f"holds {work.size} numbers for {instants.size} arrivals", "give one each", field="sizes")
    return JobList(instants, work[:, None], _draws(work.size, seed))


def arrivals(arrival_s) -> np.ndarray:
    """Instants in order, or an `InputError` that names the first one that is not."""
    instants = vector(arrival_s, "arrival_s")
    back = np.flatnonzero(np.diff(instants) < 0)
    if back.size:
        raise InputError("lies before the arrival above it", "sort the jobs", row=int(back[0]) + 2, field="arrival_s")
    return instants


def _draws(count: int, seed: Seed) -> np.ndarray:
    return stream(seed, "dispatch").random((count, 2))
