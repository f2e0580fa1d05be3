"""M/M/c/K: a full system turns customers away."""

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import arrival_rate, levels, positive, server_count
from workbench.queueing.kernels.levels import level_probabilities, mean_above
from workbench.queueing.model.answer import Waiting, line


class LimitedRoom(Waiting):
    """M/M/c/K in its steady state; times are those of the customers let in.

    Attributes:
        offered_rate_per_s: λ, before anyone is turned away; `arrival_rate_per_s` is what remains.
        blocking_probability: share turned away.
        empty_probability: P(nobody in the system).
    """

    offered_rate_per_s: float
    blocking_probability: float
    empty_probability: float


def mmck(arrival_rate_per_s: float, service_rate_per_s: float, servers: int, places: int) -> LimitedRoom:
    """How many are turned away, and how long do the others wait, where at most K are inside?

    Any load has a steady state, also one above 1.

    Parameters:
        arrival_rate_per_s: λ of the Poisson arrivals, let in or not.
        service_rate_per_s: μ of each server.
        servers: c.
        places: K, waiting and in service together, at least c.

    Raises:
        InputError: fewer places than servers, or a number that cannot be.

    >>> round(mmck(5.0, 1.0, 4, 20).blocking_probability, 9)
    0.202842884
    """
    arrivals, services = arrival_rate(arrival_rate_per_s), positive(service_rate_per_s, "service_rate_per_s")
    c, room = server_count(servers), levels(places, "places")
    if room < c:
        raise InputError(f"is {room}, fewer than the {c} servers", "give at least one place per server", field="places")
    inside = np.empty(room + 1)
    level_probabilities(arrivals, services * np.minimum(np.arange(1, room + 1), c), False, inside)
    entering = arrivals * float(inside[:-1].sum())
    wait = mean_above(inside, c) / entering
    return LimitedRoom(
        queue=f"M/M/{c}/{room}",
        kind="exact",
        arrivals="Poisson",
        service="exponential",
        source="birth-death balance; Gross & Harris, Fundamentals of Queueing Theory",
        **line(entering, entering / (c * services), wait, 1 / services),
        offered_rate_per_s=arrivals,
        blocking_probability=float(inside[-1]),
        empty_probability=float(inside[0]),
    )
