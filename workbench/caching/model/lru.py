"""An LRU cache of a few models among many: how long a model stays, exactly and on a sample path."""

from typing import NamedTuple

import numpy as np
from pydantic import model_validator

from workbench.caching.kernels.lru import lru_gone, lru_replay
from workbench.errors import InputError
from workbench.records import Asked, AtLeastOne, Positive


class LruCache(Asked):
    """Equally popular models, each asked for at the times of a Poisson process, the least recently used one dropped.

    Attributes:
        models: how many are asked for. capacity: how many the cache holds, fewer than that.
        rate_per_s: requests of each model.
    """

    models: AtLeastOne
    capacity: AtLeastOne
    rate_per_s: Positive

    @model_validator(mode="after")
    def _evicts(self):
        if self.capacity >= self.models:
            raise ValueError(f"is {self.capacity} for {self.models} models, so none is evicted; hold fewer")
        return self

    @property
    def miss_share(self) -> float:
        """Share of requests that find their model absent: each is as likely held as any other."""
        return 1 - self.capacity / self.models

    @property
    def mean_stay_s(self) -> float:
        """Mean time from load to eviction, by Little's law: C held, loads at rate λ(M - C)."""
        return self.capacity / (self.rate_per_s * (self.models - self.capacity))

    @property
    def mean_idle_s(self) -> float:
        """Mean time from last use to eviction: C stages, of rates Mλ, (M - 1)λ, …"""
        return sum(1 / (self.rate_per_s * (self.models - place)) for place in range(self.capacity))

    def gone(self, times_s) -> tuple[np.ndarray, np.ndarray]:
        """Exact shares of evictions by age: P(stay ≤ t) and P(idle ≤ t), float64 each.

        Between load and eviction a model moves back one place for each request to one behind it, and to the front for
        each of its own: a Markov chain on the C places, watched after a Poisson number of requests. An idle time has
        no request of its own, which makes it a sum of C exponential times.

        Parameters:
            times_s: seconds t, one or more.

        Raises:
            InputError: a time below 0, or one that is not finite.

        >>> stay, idle = LruCache(models=12, capacity=1, rate_per_s=1 / 60).gone([15.0])
        >>> round(float(stay[0]), 4), round(float(idle[0]), 4)
        (0.9361, 0.9502)
        """
        times = np.atleast_1d(np.asarray(times_s, dtype=float))
        if not np.isfinite(times).all() or (times < 0).any():
            raise InputError("holds a time that is none", "give seconds of 0 or more", field="times_s")
        stay, idle = np.empty_like(times), np.empty_like(times)
        lru_gone(self.models, self.capacity, times * (self.rate_per_s * self.models), stay, idle)
        return stay, idle


class Evictions(NamedTuple):
    """One row an eviction: seconds since the load, and since the last use; float64[evictions] each."""

    stay_s: np.ndarray
    idle_s: np.ndarray


def lru_evictions(time_s, model, capacity: int) -> Evictions:
    """How long was each model held when it was evicted?

    Parameters:
        time_s: float64[n], requests in order. model: int[n], which each asks for, from 0.
        capacity: models that are held at once.

    Raises:
        InputError: times and models that do not go together, or no room for a model.

    >>> lru_evictions([0.0, 1.0, 4.0, 9.0], [0, 1, 0, 2], 2)
    Evictions(stay_s=array([8.]), idle_s=array([8.]))
    """
    times, wanted = checked_requests(time_s, model)
    if capacity < 1:
        raise InputError(f"is {capacity}", "hold at least one model", field="capacity")
    stay, idle = np.empty(times.size), np.empty(times.size)
    count = lru_replay(times, wanted, int(wanted.max()) + 1, capacity, stay, idle)
    return Evictions(stay[:count], idle[:count])


def checked_requests(time_s, model) -> tuple[np.ndarray, np.ndarray]:
    """Requests as float64 and int64, refused where they are out of order or name no model."""
    times, wanted = np.asarray(time_s, dtype=float), np.asarray(model, dtype=np.int64)
    if times.ndim != 1 or times.shape != wanted.shape or not times.size:
        raise InputError("does not hold one model a request", "give two rows of one length", field="model")
    if not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise InputError("is out of order", "sort the requests by time", field="time_s")
    if (wanted < 0).any():
        raise InputError("holds a negative number", "number the models from 0", field="model")
    return times, wanted
