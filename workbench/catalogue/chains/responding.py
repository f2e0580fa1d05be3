"""Mean responses on drawn fleets: the same jobs for every policy, backend and c."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from workbench.catalogue.context import Context
from workbench.chains import JobList, Served, after_warm_up, dispatch_path, draw_jobs
from workbench.chains.simulated import simulate_dispatch
from workbench.queueing import Distribution, Exponential, Path
from workbench.queueing.statistics import batch_means

WARM_UP = 0.1
"""Share of the time at the start that is left out, as in the simulator of the paper."""


class Response(NamedTuple):
    """Means over the jobs behind the warm-up, with the standard error of the mean response by batch means."""

    response_s: float
    wait_s: float
    service_s: float
    error_s: float


def jobs_at(
    context: Context,
    arrival_rate_per_s: float,
    count: int,
    *,
    sizes: Distribution | None = None,
    gaps: Callable[[float], Distribution] | None = None,
    part: int = 0,
) -> JobList:
    """Poisson arrivals and exponential sizes of mean 1, unless told otherwise; at every rate from the same numbers."""
    mean_s = 1 / arrival_rate_per_s
    seed = np.random.SeedSequence(context.seed, spawn_key=(part,))
    return draw_jobs(
        Exponential(mean_s=mean_s) if gaps is None else gaps(mean_s),
        Exponential(mean_s=1.0) if sizes is None else sizes,
        count,
        seed,
    )


def path_of(context: Context, jobs: JobList, chains: Served, policy: str = "jffc") -> Path:
    """The path of a policy, by the context's backend."""
    run = simulate_dispatch if context.backend == "simpy" else dispatch_path
    return run(jobs, chains, policy)


def respond(path: Path) -> Response:
    """What a path says behind its warm-up."""
    kept = after_warm_up(path, WARM_UP)
    response = kept.response_s
    error = batch_means(response).interval.half_width / STUDENT_29 if response.size >= 60 else float("nan")
    wait = float(kept.wait_s.mean())
    return Response(float(response.mean()), wait, float(response.mean()) - wait, error)


STUDENT_29 = 2.0452296421327034
"""Half width of a 95 % interval of 30 batch means over their standard error."""
