"""What happened to each customer, whichever room computed it, and what it averages to."""

from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import MOST_CUSTOMERS, finite, levels, vector
from workbench.queueing.distributions import Distribution, distribution
from workbench.workloads.generators.streams import Seed, stream


class Customers(NamedTuple):
    """Who arrives when and wants how much.

    Attributes:
        arrival_s: float64[n], in order.
        service_s: float64[n], time each takes alone on a server of rate 1/s.
    """

    arrival_s: np.ndarray
    service_s: np.ndarray


def draw_customers(gaps: Distribution, service: Distribution, customers: int, seed: Seed) -> Customers:
    """Draw independent gaps and services from two streams of one seed; the first customer arrives after one gap.

    Services do not change when gaps do, nor the other way round: queues are compared on common random numbers.

    >>> from workbench.queueing import Exponential
    >>> drawn = draw_customers(Exponential(mean_s=2.0), Exponential(mean_s=1.0), 3, seed=1)
    >>> drawn.arrival_s.shape
    (3,)
    """
    count = levels(customers, "customers", most=MOST_CUSTOMERS)
    gaps, service = distribution(gaps, "gaps"), distribution(service, "service")
    arrivals = np.cumsum(gaps.draw(count, stream(seed, "arrivals")))
    return Customers(arrivals, service.draw(count, stream(seed, "lengths")))


def checked(customers: Customers) -> Customers:
    """The same as contiguous float arrays, refused where they do not fit together."""
    try:
        arrival_s, service_s = customers
    except (TypeError, ValueError):
        raise InputError(
            f"is a {type(customers).__name__}", "give Customers(arrival_s, service_s)", field="customers"
        ) from None
    arrival, service = vector(arrival_s, "arrival_s"), vector(service_s, "service_s")
    if arrival.size != service.size:
        raise InputError(f"holds {service.size} values for {arrival.size} arrivals", "give one each", field="service_s")
    back = np.flatnonzero(np.diff(arrival) < 0)
    if back.size:
        raise InputError(
            "lies before the arrival above it", "sort the customers", row=int(back[0]) + 2, field="arrival_s"
        )
    return Customers(arrival, service)


class Path(NamedTuple):
    """One sample path: what happened to each customer.

    Attributes:
        arrival_s, start_s, finish_s: float64[n] instants; start and finish are NaN for a customer turned away.
        place: int64[n], the server class or queue of each, None where there is only one.
    """

    arrival_s: np.ndarray
    start_s: np.ndarray
    finish_s: np.ndarray
    place: np.ndarray | None = None

    @property
    def wait_s(self) -> np.ndarray:
        """Time of each before service starts."""
        return self.start_s - self.arrival_s

    @property
    def response_s(self) -> np.ndarray:
        """Time of each from arrival to the end of service."""
        return self.finish_s - self.arrival_s

    @property
    def blocked_share(self) -> float:
        """Share turned away."""
        return float(np.isnan(self.finish_s).mean())

    def in_system(self, times_s) -> np.ndarray:
        """How many are waiting or in service just before each instant (who leaves then is still counted)."""
        inside = ~np.isnan(self.finish_s)
        came = np.searchsorted(self.arrival_s[inside], times_s, "left")
        return came - np.searchsorted(np.sort(self.finish_s[inside]), times_s, "left")

    def mean_in_system(self, from_s: float, to_s: float) -> float:
        """Mean over time of the number waiting or in service between two instants."""
        return _overlap(self.arrival_s, self.finish_s, from_s, to_s)

    def mean_waiting(self, from_s: float, to_s: float) -> float:
        """Mean over time of the number waiting between two instants."""
        return _overlap(self.arrival_s, self.start_s, from_s, to_s)


def window(from_s: float, to_s: float) -> tuple[float, float]:
    """Two finite instants, the second after the first, or an `InputError`."""
    begin, end = finite(from_s, "from_s"), finite(to_s, "to_s")
    if not begin < end:
        raise InputError(f"is {end:g}, not after from_s {begin:g}", "give a later end", field="to_s")
    return begin, end


def _overlap(begin_s: np.ndarray, end_s: np.ndarray, from_s: float, to_s: float) -> float:
    from_s, to_s = window(from_s, to_s)
    inside = np.clip(end_s, from_s, to_s) - np.clip(begin_s, from_s, to_s)
    return float(np.nansum(inside)) / (to_s - from_s)
