"""Steps and ticks must be long enough: to be told apart by a clock of 64 bits, and for all of them to be logged."""

import numpy as np

from workbench.errors import UserError
from workbench.serving.kernels.serving import MOST_DECISIONS
from workbench.serving.model.lowered import Lowered, Outcome


def require_apart(lowered: Lowered, outcome: Outcome) -> None:
    """Refuse a run in which a step ended at the instant at which it began, since time + step was time.

    Raises:
        UserError: such a step, with its instance and the time.
    """
    ends_s, at = outcome.iteration_end_s, outcome.iteration_at
    still = 1 + np.flatnonzero(ends_s[1:] <= ends_s[:-1])
    still = still[~np.isin(still, at)]  # the first step of an instance follows on none
    admitted_s = lowered.requests.arrival_s + outcome.wait_s
    at_once = np.flatnonzero(np.fmin(outcome.first_token_s, outcome.finish_s) <= admitted_s)
    found = [(float(ends_s[k]), int(np.searchsorted(at, k, side="right")) - 1) for k in still[:1]]
    found += [(float(admitted_s[r]), int(outcome.instance[r])) for r in at_once[:1]]
    if found:
        time_s, instance = min(found)
        raise UserError(
            f"A step of instance {instance} is too short to be told from none {time_s:g} s after the first arrival (a "
            f"clock of 64 bits moves by {np.spacing(time_s):.2g} s there); give longer steps, or arrivals that are "
            "nearer together."
        )


def too_many_decisions(tick_s: float) -> UserError:
    """What to say of a run in which autoscalers decide every so many seconds, again and again."""
    return UserError(
        f"Autoscalers decided more than {MOST_DECISIONS:,} times, every {tick_s:g} s, and the run is not over; give a "
        "longer tick_s, until_s, or requests that are nearer together."
    )
