"""Steps must be long enough to be told apart by a clock of 64 bits."""

import numpy as np

from workbench.errors import UserError
from workbench.serving.model.lowered import Lowered, Outcome


def require_apart(lowered: Lowered, outcome: Outcome) -> None:
    """Refuse a run in which a step ended at the instant at which it began, since time + step was time.

    Raises:
        UserError: such a step, with its instance and the time.
    """
    ends_s, at = outcome.iteration_end_s, outcome.iteration_at
    stands = np.diff(ends_s) <= 0
    stands[at[1:-1][(at[1:-1] > 0) & (at[1:-1] < ends_s.size)] - 1] = False  # from one instance to the next
    admitted_s = lowered.requests.arrival_s + outcome.wait_s
    at_once = np.flatnonzero(np.fmin(outcome.first_token_s, outcome.finish_s) <= admitted_s)
    if stands.any():
        time_s, place = ends_s[stands.argmax()], int(np.searchsorted(at, stands.argmax(), side="right")) - 1
    elif at_once.size:
        time_s, place = admitted_s[at_once[0]], int(outcome.instance[at_once[0]])
    else:
        return
    raise UserError(
        f"A step of instance {place} is too short to be told from none {time_s:g} s after the first arrival (a clock "
        f"of 64 bits moves by {np.spacing(time_s):.2g} s there); give longer steps, or arrivals that are nearer together."
    )
