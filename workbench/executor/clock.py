"""How a real run keeps time: the three forms of its clock, and sleeping until an instant."""

import time
from collections.abc import Callable
from typing import Literal, get_args

from workbench.errors import UnknownName

Clock = Literal["real", "stamped", "unpaced"]
"""*real*: a transfer starts when the block is really held and both ports are free, so the total emerges from what the
processes did. *stamped*: starts are reckoned from scheduled instants carried with the blocks, so wake-up errors do not
add up and the total equals the model's by construction; its evidence is the lateness. *unpaced*: as fast as it goes."""

NAP_S = 0.05
"""Longest sleep at a stretch, so that a run that is called off ends soon."""


def check_clock(clock: str) -> None:
    """Refuse a clock that does not exist."""
    if clock not in get_args(Clock):
        raise UnknownName("clock", clock, get_args(Clock))


def sleep_until(instant_s: float, check: Callable[[], None]) -> float:
    """Sleep until an instant of `time.monotonic` (one clock for all processes of a host) and return the time then.

    Parameters:
        instant_s: the absolute time; an instant in the past returns at once.
        check: called between naps; raises when the run has been called off.
    """
    while (left_s := instant_s - time.monotonic()) > 0:
        time.sleep(min(left_s, NAP_S))
        check()
    return time.monotonic()
