"""Serve jobs by chains of real processes: blocks of a transformer, memory in slots, round trips waited for."""

from collections.abc import Callable
from contextlib import ExitStack

from workbench.chains.model.composing import Composition
from workbench.chains.model.hardware import TokenTimes
from workbench.chains.model.jobs import JobList
from workbench.chains.policy import Dispatch
from workbench.chains.real.orchestrator import Orchestrator
from workbench.chains.real.outcome import ChainRun
from workbench.chains.real.planning import Work, checked, smallest_theta
from workbench.chains.real.reporting import report
from workbench.errors import UserError
from workbench.executor.faults import Kill, Stop, Swap
from workbench.executor.processes import Pool
from workbench.executor.scale import LARGEST_THETA, OVERHEAD, TRIES, longer_by
from workbench.executor.transformer import Shape
from workbench.executor.watching import HEARTBEAT_S, StopWanted
from workbench.records import positive

SHAPE = Shape(layers=12, longest=256)
"""Twelve blocks of a small transformer."""

SPARE_S = 60.0


def serve_chains(
    composition: Composition,
    times: TokenTimes,
    jobs: JobList,
    *,
    shape: Shape = SHAPE,
    policy: Dispatch | Callable = "jffc",
    batched: bool = False,
    theta: float | None = None,
    fault: Kill | Stop | Swap | None = None,
    seed: int = 0,
    heartbeat_s: float = HEARTBEAT_S,
    pool: Pool | None = None,
    stop: StopWanted = None,
) -> ChainRun:
    """What happens to jobs that real servers serve in chains?

    Every server is a process with some blocks of a transformer and a counter of cache slots. The caller is the
    orchestrator: it dispatches jobs by the policy that formulas and simulations use, relays each pass from server to
    server, and so is entry and exit. Each session has keys and values of its own on every server of its chain. A pass
    is really computed; its round trip and the seconds of its blocks are waited for. When a server dies or hangs, the
    jobs on its chains begin again on another one, with all they have said as their prompt; if no chain is left, new
    ones are allocated among the servers that remain.

    Parameters:
        composition: with at least one chain, of as many blocks as `shape` has layers.
        times: seconds at full size for each unit of work on each server.
        jobs: arrivals, and work of (1, tokens in, tokens out but the first); prompts are drawn from the seed.
        shape: of the transformer.
        policy: of dispatch, as in `dispatch_path`, or any Python function of that signature.
        batched: whether a server computes passes that wait for the same blocks together; else one after the other.
        theta: seconds of the run over those of full size; by default the smallest at which the machine keeps up, and a
            run that is late by more than 5 % is made again with a larger one, at most three in all; the most punctual
            is returned.
        fault: `Kill` or `Stop` of a server (its number in the fleet) at seconds of the run, or a `Swap` of the weights
            of two blocks of one, which outputs must show.
        seed: of weights and prompts.
        heartbeat_s: silence after which a process counts as hung.
        pool: processes to use; by default some are started and ended.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `InputError` for jobs and chains that do not fit; `UserError` where time would
        have to be stretched more than 100 times; `ProcessLost` where jobs cannot be finished without a lost server;
        `RunFailed` when it takes too long or a server fails; `RunStopped` when `stop` says so.
    """
    work = checked(composition, times, jobs, shape, seed, policy, batched, fault)
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(len(work.servers)))
        if theta is not None:
            return _once(work, positive(theta, "theta"), heartbeat_s, pool, stop)
        theta, runs = smallest_theta(work, pool, stop), []
        while len(runs) < TRIES and not (runs and runs[-1].overhead <= OVERHEAD):
            runs.append(_once(work, theta, heartbeat_s, pool, stop))
            theta = min(LARGEST_THETA, theta * longer_by(runs[-1].overhead))
    return min(runs, key=lambda run: run.overhead)


def _once(work: Work, theta: float, heartbeat_s: float, pool: Pool, stop: StopWanted) -> ChainRun:
    drills = (work.fault,) if isinstance(work.fault, Kill | Stop) else ()
    with pool.lease(len(work.servers)) as workers:
        run = Orchestrator(
            work.asked(theta), workers, work.servers, work.plans(theta), timeout_s=SPARE_S + theta * work.longest_s,
            heartbeat_s=heartbeat_s, stop=stop,
        )  # fmt: skip
        reports = run.run(pool.beats, drills)
    if drills and not run.losses:
        raise UserError(f"The run was over before the fault at {drills[0].at_s:g} s; plan the fault earlier.")
    return report(work, run, reports, theta)
