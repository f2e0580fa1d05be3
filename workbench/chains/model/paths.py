"""What happens to each job: dispatch to chains by the compiled loop."""

from collections.abc import Callable

import numpy as np

from workbench.chains.kernels.dispatching import run
from workbench.chains.kernels.layout import BAD_CHOICE, STUCK, Jobs, Sharing, jobs_of, lines_of, sharing_of
from workbench.chains.model.jobs import JobList
from workbench.chains.model.serving import Served
from workbench.chains.policy import Dispatch, dispatcher, policy_number
from workbench.errors import InputError, UserError
from workbench.queueing import Path
from workbench.queueing.checking import share
from workbench.records import takes_records


@takes_records
def dispatch_path(
    jobs: JobList, chains: Served, policy: Dispatch | Callable = "jffc", *, contention: bool = False
) -> Path:
    """What happens to each job when a policy dispatches them to chains?

    Parameters:
        jobs: arrivals and work.
        chains: rates, slots and seconds.
        policy: the name of a policy, a function of the signature that `workbench.chains.dispatcher` states, or what
            that made of it. A function that does not compile is refused; `simulate_dispatch` takes it.
        contention: whether jobs slow each other down on a server that is busy for more than all of its time; else a
            job takes the same seconds however many others are there, as the paper has it.

    Returns:
        A path whose `place` is the chain, as numbered where the chains were given.
    """
    made, sharing = laid_out(jobs, chains, contention)
    if isinstance(policy, str):
        number, chooser = policy_number(policy), None
    else:
        number, chooser = 0, policy if hasattr(policy, "native_name") else dispatcher(policy)
    lines = lines_of(chains.rates_per_s, chains.slots, chains.seconds)
    check_end(run(made, lines, sharing, number, chooser))
    return Path(made.arrival_s, made.start_s, made.finish_s, chains.order[made.chain])


def laid_out(jobs: JobList, chains: Served, contention: bool) -> tuple[Jobs, Sharing | None]:
    """Arrays of a run, refused where jobs and chains do not fit together."""
    if jobs.work.shape[1] != chains.seconds.shape[1]:
        raise InputError(
            f"has {jobs.work.shape[1]} kinds of work, the chains state seconds for {chains.seconds.shape[1]}",
            "draw sizes for chains without token times, and take requests for chains with them",
            field="jobs",
        )
    made = jobs_of(*(np.ascontiguousarray(array, dtype=float) for array in jobs))
    if not contention:
        return made, None
    if not chains.server.shape[1]:
        raise InputError("needs the servers of each chain", "take chains_of a composition", field="contention")
    return made, sharing_of(
        chains.servers, chains.server, chains.hops, chains.communication_s, chains.compute_s, int(chains.slots.sum())
    )


def check_end(ended: int) -> None:
    """A `UserError` where a policy named no chain, or left jobs waiting with nothing running."""
    if ended == BAD_CHOICE:
        raise UserError(
            "The dispatch function failed or returned no chain; return 0 to slots.size - 1, or -1 to wait "
            "(simulate_dispatch says what failed)."
        )
    if ended == STUCK:
        raise UserError(
            "The dispatch function leaves jobs in the central line while no job is left that could end; "
            "send the head to a chain when all are idle."
        )


@takes_records
def after_warm_up(path: Path, warm_up: float = 0.1) -> Path:
    """The path of the jobs that arrive after a first share of the time.

    Parameters:
        path: of all jobs.
        warm_up: share of the time between the first and the last arrival that is left out, from 0 to below 1.
    """
    begin = np.quantile(path.arrival_s[[0, -1]], share(warm_up, "warm_up"))
    kept = path.arrival_s >= begin
    return Path(*(array[kept] for array in path[:3]), None if path.place is None else path.place[kept])
