"""How many models are busy at once, on a sample path or a trace: nobody waits, whoever arrives is in service."""

from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import vector
from workbench.queueing.kernels.active import busy_periods
from workbench.queueing.path import Customers, checked, window


class ActivePath(NamedTuple):
    """The number of active models as a step function of time.

    Attributes:
        time_s: float64[n], when it changes; 0 models are active before the first.
        active: int64[n], how many are active from then on.
    """

    time_s: np.ndarray
    active: np.ndarray

    def at(self, times_s) -> np.ndarray:
        """The number just after each instant, int64."""
        place = np.searchsorted(self.time_s, times_s, "right")
        return np.concatenate([[0], self.active])[place]

    def shares(self, from_s: float, to_s: float) -> np.ndarray:
        """Share of the time between two instants with 0, 1, 2, … models active, float64."""
        from_s, to_s = window(from_s, to_s)
        inside = (self.time_s > from_s) & (self.time_s < to_s)
        edges = np.concatenate([[from_s], self.time_s[inside], [to_s]])
        count = self.at(edges[:-1])
        return np.bincount(count, np.diff(edges)) / (to_s - from_s)

    def mean(self, from_s: float, to_s: float) -> float:
        """Mean number of active models over the time between two instants (seconds)."""
        shares = self.shares(from_s, to_s)
        return float(shares @ np.arange(shares.size))


def active_path(customers: Customers, model) -> ActivePath:
    """How many models have a request in flight at each instant when no request ever waits (M/G/∞ a model)?

    Parameters:
        customers: arrivals in order, and how long each keeps its model busy.
        model: int[n], whose request it is.

    >>> path = active_path(Customers([0.0, 1.0, 1.5], [2.0, 2.0, 5.0]), [0, 1, 0])
    >>> path.time_s.tolist(), path.active.tolist()
    ([0.0, 1.0, 3.0, 6.5], [1, 2, 1, 0])
    """
    arrival, service = checked(customers)
    owner = checked_owners(model, arrival.size)
    order = np.lexsort((arrival, owner))
    begin, end = np.empty(arrival.size), np.empty(arrival.size)
    count = busy_periods(arrival[order], (arrival + service)[order], owner[order], begin, end)
    return path_of(begin[:count], end[:count])


def checked_owners(model, requests: int) -> np.ndarray:
    """Whose each request is, as float64[n], refused where there is not one each."""
    owner = vector(model, "model", least=-np.inf)
    if owner.size != requests:
        raise InputError(f"holds {owner.size} values for {requests} arrivals", "give one each", field="model")
    return owner


def path_of(begin_s: np.ndarray, end_s: np.ndarray) -> ActivePath:
    """The step function of busy periods, one step an instant."""
    times, place = np.unique(np.concatenate([begin_s, end_s]), return_inverse=True)
    change = np.zeros(times.size, dtype=np.int64)
    np.add.at(change, place, np.repeat([1, -1], begin_s.size))
    moved = change != 0
    return ActivePath(times[moved], np.cumsum(change)[moved])
