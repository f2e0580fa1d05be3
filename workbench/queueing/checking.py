"""Checked questions: a number that makes no sense, or a load that never settles, is one clear sentence."""

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np

from workbench.errors import InputError, UserError


class Unstable(UserError):
    """More work arrives than can be done, so nothing settles and there is no long-run mean to give.

    Attributes:
        load: work that arrives over work that can be done in the same time, 1 or more.
    """

    def __init__(self, queue: str, arrival_rate_per_s: float, capacity_per_s: float, remedy: str = "add capacity"):
        self.load = arrival_rate_per_s / capacity_per_s if capacity_per_s > 0 else math.inf
        super().__init__(
            f"{queue} has no steady state: {arrival_rate_per_s:g} arrivals/s against a capacity of "
            f"{capacity_per_s:g}/s is a load of {self.load:.6g}, and from 1 on the queue grows without end; "
            f"stay below {capacity_per_s:g} arrivals/s or {remedy}."
        )


def stable(queue: str, arrival_rate_per_s: float, capacity_per_s: float, remedy: str = "add capacity") -> float:
    """The load if it is below 1, else `Unstable`."""
    if not math.isfinite(capacity_per_s):
        raise InputError(
            f"of {queue} adds up to more than a float holds", "take rates below 1e300 per second", field="capacity"
        )
    if not arrival_rate_per_s < capacity_per_s:
        raise Unstable(queue, arrival_rate_per_s, capacity_per_s, remedy)
    return arrival_rate_per_s / capacity_per_s


def more_servers(offered_load: float) -> str:
    """The remedy for too much load: how many servers carry it, where that is a number one can read."""
    return f"take at least {math.floor(offered_load) + 1:,} servers" if offered_load < 1e9 else "add servers"


def finite(value: float, name: str) -> float:
    """One finite number as a float, else an `InputError` that names it."""
    if not isinstance(value, Real | np.number) or isinstance(value, bool):
        many = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
        remedy = "give one number here, or the whole list to workbench.queueing.curve" if many else "give a number"
        raise InputError(f"is a {type(value).__name__}", remedy, field=name)
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        raise InputError(f"is {number!r}", "give a finite number", field=name)
    return number


def positive(value: float, name: str) -> float:
    """The number if it is finite and above 0."""
    if (number := finite(value, name)) <= 0:
        raise InputError(f"is {number:g}", "give a number above 0", field=name)
    return number


def not_negative(value: float, name: str) -> float:
    """The number if it is finite and 0 or more."""
    if (number := finite(value, name)) < 0:
        raise InputError(f"is {number:g}", "give 0 or more", field=name)
    return number


def arrival_rate(value: float) -> float:
    """A rate at which someone arrives; 0 is refused because every answer here is a mean over those who arrive."""
    if (number := finite(value, "arrival_rate_per_s")) == 0:
        raise InputError(
            "is 0: nobody ever arrives, the servers stand idle, and a mean over customers has no meaning",
            "give a rate above 0",
            field="arrival_rate_per_s",
        )
    return positive(number, "arrival_rate_per_s")


MOST_LEVELS = 10_000_000
"""The longest array of probabilities that is ever made."""

MOST_SERVERS = 1_000_000
"""Servers that formulas and paths still walk through one by one in seconds."""

MOST_CUSTOMERS = 100_000_000
"""Customers of a path: each of its arrays then takes 0.8 GB."""


def whole(value: float, name: str, least: int = 1) -> int:
    """A whole number of at least `least`."""
    number = finite(value, name)
    if number != int(number) or number < least:
        raise InputError(f"is {number:g}", f"give a whole number of at least {least}", field=name)
    return int(number)


def levels(value: float, name: str, least: int = 1, most: int = MOST_LEVELS) -> int:
    """A whole number of levels, each of which takes a place in memory."""
    if (number := whole(value, name, least)) > most:
        shown = f"{number:,}" if number < 1e15 else f"{number:g}"
        raise InputError(f"is {shown}", f"give at most {most:,}", field=name)
    return number


def server_count(value: float) -> int:
    """A number of servers; without any nobody is ever served."""
    if finite(value, "servers") == 0:
        raise InputError("is 0: nobody would ever be served", "give at least 1 server", field="servers")
    return levels(value, "servers", most=MOST_SERVERS)


def share(value: float, name: str) -> float:
    """A probability from 0 on and below 1, as quantiles ask for it."""
    number = finite(value, name)
    if not 0 <= number < 1:
        raise InputError(f"is {number:g}", "give a share from 0 to below 1 (0.99 for the 99th percentile)", field=name)
    return number


def vector(values, name: str, least: float = 0.0, above: bool = False) -> np.ndarray:
    """A one-dimensional float64 array of finite numbers from `least` on (or above it), at least one of them."""
    try:
        given = np.asarray(values)
        if given.size and given.dtype.kind not in "iufO":
            raise TypeError
        array = np.ascontiguousarray(np.atleast_1d(np.asarray(given, dtype=float)))
    except (TypeError, ValueError, OverflowError):
        raise InputError("holds something that is no number", "give a list of numbers", field=name) from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"has shape {array.shape}", "give a flat list of at least one number", field=name)
    wrong = ~np.isfinite(array) | ((array <= least) if above else (array < least))
    if wrong.any():
        row = int(np.argmax(wrong))
        wanted = f"give finite numbers {'above' if above else 'from'} {least:g}{'' if above else ' on'}"
        raise InputError(f"is {array[row]:g}", wanted, row=row + 1, field=name)
    return array
