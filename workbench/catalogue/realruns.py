"""Real multicasts as experiments use them: run as scale models, read at full size, with σ, θ and overhead cited."""

import functools
from collections.abc import Mapping

import numpy as np

from workbench.catalogue.context import Context
from workbench.catalogue.pacing import cite_pacing
from workbench.executor.ceilings import Ceilings, measure_ceilings
from workbench.executor.scale import choose_scale
from workbench.transfer.model import Hockney
from workbench.transfer.policy import Schedule
from workbench.transfer.real import RealMulticast, run_multicast, run_scaled_multicast


def real_seconds(
    context: Context,
    schedule: Schedule,
    message_bytes: float,
    cost: Hockney,
    slow: Mapping[tuple[int, int], float] | None = None,
) -> float:
    """Seconds, at full size, until the last of the real processes holds the message; all as of `real_completion`."""
    return float(real_completion(context, schedule, message_bytes, cost, slow).max())


def real_completion(
    context: Context,
    schedule: Schedule,
    message_bytes: float,
    cost: Hockney,
    slow: Mapping[tuple[int, int], float] | None = None,
) -> np.ndarray:
    """When each real process holds the whole message, in seconds at full size, float (nodes,).

    Parameters:
        context: of the experiment; σ, θ, overhead and the share of waiting are entered into its ledger.
        schedule: the transfers.
        message_bytes: the whole message at full size.
        cost: α and B of every link at full size.
        slow: (source, target) -> that link's bandwidth over B; above 1 for a faster one.

    Errors: `MissingExtra` without torch; `UserError` where time would have to be stretched more than 100 times.
    """
    label = f"{schedule.name}, {schedule.nodes} processes, {schedule.blocks} blocks"
    context.tell(f"real run: {label}")
    ceilings = _ceilings(schedule.nodes)
    if slow:
        run = _unequal(context, schedule, message_bytes, cost, slow, ceilings)
    else:
        run = run_scaled_multicast(
            schedule, message_bytes, cost.bytes_per_s, cost.alpha_s, seed=context.seed, ceilings=ceilings
        )
    cite_pacing(context, label, run)
    return np.array(run.completion_s) / run.scale.theta


def _unequal(
    context: Context,
    schedule: Schedule,
    message_bytes: float,
    cost: Hockney,
    slow: Mapping[tuple[int, int], float],
    ceilings: Ceilings,
) -> RealMulticast:
    rates = np.full((schedule.nodes, schedule.nodes), cost.bytes_per_s)
    for pair, share in slow.items():
        rates[pair] = cost.bytes_per_s * share
    step_s = cost.alpha_s + message_bytes / schedule.blocks / rates.max()
    scale = choose_scale(step_s, message_bytes, float(rates.max()), ceilings)
    run = run_multicast(
        schedule, scale.bytes(message_bytes), rates / scale.sigma / scale.theta, scale.seconds(cost.alpha_s),
        seed=context.seed,
    )  # fmt: skip
    return run.model_copy(update={"scale": scale})


@functools.cache
def _ceilings(processes: int) -> Ceilings:
    """This machine's ceilings for so many processes, measured once a session."""
    return measure_ceilings(processes)
