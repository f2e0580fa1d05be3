"""A multicast of full size, run on this machine as a scale model."""

from contextlib import ExitStack
from typing import Literal

from workbench.executor.ceilings import Ceilings, measure_ceilings
from workbench.executor.processes import Pool
from workbench.executor.scale import LARGEST_THETA, OVERHEAD, TRIES, Scale, choose_scale
from workbench.executor.watching import StopWanted
from workbench.records import not_negative, positive
from workbench.transfer.policy import Schedule, check
from workbench.transfer.real.multicast import run_multicast
from workbench.transfer.real.outcome import RealMulticast


def run_scaled_multicast(
    schedule: Schedule,
    message_bytes: float,
    bytes_per_s: float,
    alpha_s: float = 0.0,
    clock: Literal["real", "stamped"] = "real",
    seed: int = 0,
    *,
    ceilings: Ceilings | None = None,
    pool: Pool | None = None,
    stop: StopWanted = None,
) -> RealMulticast:
    """How long would a multicast of this size take, by real processes on this machine as a scale model?

    Bytes shrink by σ and seconds stretch by θ, see `workbench.executor.scale`. A run whose own overhead exceeds 5 % of
    the shortest step is repeated with a larger θ, at most three runs in all; the last one is returned whatever its
    overhead, which it states.

    Parameters:
        schedule: the transfers.
        message_bytes, bytes_per_s, alpha_s: message, rate of every link and time on top, at full size.
        clock, seed: as in `run_multicast`.
        ceilings: of this machine, for as many processes as the schedule has nodes; measured when not given.
        pool: processes to use; by default some are started and ended.
        stop: as in `run_multicast`.

    Errors: as `run_multicast`; `UserError` where θ would exceed 100; `InputError` for a size or rate that is not
        above 0.
    """
    message_bytes, bytes_per_s = positive(message_bytes, "message_bytes"), positive(bytes_per_s, "bytes_per_s")
    alpha_s = not_negative(alpha_s, "alpha_s")
    check(schedule)
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(schedule.nodes))
        ceilings = ceilings or measure_ceilings(schedule.nodes, pool=pool, stop=stop)
        step_s = alpha_s + message_bytes / schedule.blocks / bytes_per_s
        scale = choose_scale(step_s, message_bytes, bytes_per_s, ceilings)
        for _ in range(TRIES):
            size, rate = scale.bytes(message_bytes), scale.bytes_per_s(bytes_per_s)
            run = run_multicast(schedule, size, rate, scale.seconds(alpha_s), clock, seed, pool=pool, stop=stop)
            run = run.model_copy(update={"scale": scale})
            if run.overhead <= OVERHEAD:
                break
            longer = min(LARGEST_THETA, 1.2 * scale.theta * run.overhead / OVERHEAD)
            scale = Scale(sigma=scale.sigma, theta=longer)
    return run
