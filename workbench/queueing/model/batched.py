"""A server that works on many jobs in step, each step longer the more there are: decoding with continuous batching."""

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import arrival_rate, levels, not_negative, positive, stable
from workbench.queueing.kernels.levels import level_probabilities, mean_above
from workbench.queueing.model.answer import Waiting, line


class Batched(Waiting):
    """Batched service in its steady state; times and means are those of the jobs let in.

    Attributes:
        offered_rate_per_s: λ, before anyone is turned away.
        full_rate_per_s: jobs completed per second by a full batch.
        empty_probability: P(nobody in the system).
        wait_probability: share of the jobs let in that do not start at once.
        blocking_probability: share turned away, 0 without a limit on places.
        mean_running: mean batch size, an idle server counted as 0.
    """

    offered_rate_per_s: float
    full_rate_per_s: float
    empty_probability: float
    wait_probability: float
    blocking_probability: float
    mean_running: float


def batched_service(
    arrival_rate_per_s: float,
    step_fixed_s: float,
    step_per_job_s: float,
    mean_steps: float,
    max_batch: int,
    places: int | None = None,
) -> Batched:
    """How long do jobs wait and run when up to B of them share steps of a + b n seconds?

    A birth-death chain: with n running, each job ends after an exponential number of steps, so jobs leave at the rate
    n / (g (a + b n)).

    Parameters:
        arrival_rate_per_s: λ of the Poisson arrivals.
        step_fixed_s, step_per_job_s: a and b; a step of n jobs takes a + b n.
        mean_steps: g, steps a job needs.
        max_batch: B; the others wait.
        places: K, most jobs inside, running or waiting; None for no limit.

    Raises:
        InputError: a step that takes no time, or fewer places than `max_batch`. Unstable: more arrives than is
        served, and places have no limit.

    >>> busy = batched_service(12, 0.02, 0.0005, 100, 64, 128)
    >>> round(busy.mean_in_system, 6), round(busy.blocking_probability, 6)
    (74.678719, 0.003844)
    """
    arrivals, steps = arrival_rate(arrival_rate_per_s), positive(mean_steps, "mean_steps")
    fixed, each = not_negative(step_fixed_s, "step_fixed_s"), not_negative(step_per_job_s, "step_per_job_s")
    batch = levels(max_batch, "max_batch")
    if fixed + each == 0:
        raise InputError("and step_per_job_s are both 0", "let a step take some time", field="step_fixed_s")
    room = batch if places is None else levels(places, "places")
    if room < batch:
        raise InputError(f"is {room}, fewer than max_batch", "give at least max_batch places", field="places")
    running = np.minimum(np.arange(1, room + 1), batch)
    leave = running / (steps * (fixed + each * running))
    if places is None:
        stable("Batched service", arrivals, float(leave[-1]), "allow a larger batch")
    inside = np.empty(room + 1)
    level_probabilities(arrivals, leave, places is None, inside)
    blocked = 0.0 if places is None else float(inside[-1])
    entering = arrivals * (1 - blocked)
    full = float(leave[-1])
    if places is None:
        busy = mean_above(inside, 0)
        queue = float(inside[-1]) * (arrivals / full) / (1 - arrivals / full)
        waits = float(inside[-1])
    else:
        queue = mean_above(inside, batch)
        busy = mean_above(inside, 0) - queue
        waits = float(inside[batch:-1].sum()) / (1 - blocked)
    return Batched(
        queue=f"M/M(n)/{batch}" + (f"/{room}" if places is not None else ""),
        kind="exact",
        arrivals="Poisson",
        service="exponential (in steps)",
        source="birth-death balance with rates that depend on the state; Kleinrock, Queueing Systems 1",
        **line(entering, 1 - float(inside[0]), queue / entering, busy / entering),
        offered_rate_per_s=arrivals,
        full_rate_per_s=full,
        empty_probability=float(inside[0]),
        wait_probability=waits,
        blocking_probability=blocked,
        mean_running=busy,
    )
