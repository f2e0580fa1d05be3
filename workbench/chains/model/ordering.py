"""Chains as users give them, checked and in the order in which kernels take them."""

from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import MOST_SERVERS, vector


class Ordered(NamedTuple):
    """Chains in order of falling rate, equal ones as given.

    Attributes:
        rates_per_s, slots: float64[K] and int64[K].
        order: int64[K], the place of each among those given.
    """

    rates_per_s: np.ndarray
    slots: np.ndarray
    order: np.ndarray


def ordered(rates_per_s, slots) -> Ordered:
    """Rates and slots in order of falling rate, or an `InputError` that names what cannot be."""
    rates, counts = vector(rates_per_s, "rates_per_s", above=True), vector(slots, "slots", above=True)
    if counts.size != rates.size:
        raise InputError(f"holds {counts.size} numbers for {rates.size} rates", "give one per chain", field="slots")
    if (counts != np.round(counts)).any():
        row = int(np.argmax(counts != np.round(counts)))
        raise InputError(f"is {counts[row]:g}", "give whole numbers of slots", row=row + 1, field="slots")
    if rates.min() < 1e-300:
        raise InputError(
            f"is {rates.min():g}, whose service time is beyond all numbers", "give a larger one", field="rates_per_s"
        )
    if counts.sum() > MOST_SERVERS:
        raise InputError(f"add up to {counts.sum():,.0f}", f"give at most {MOST_SERVERS:,}", field="slots")
    order = np.argsort(-rates, kind="stable")
    return Ordered(rates[order], counts[order].astype(np.int64), order)
