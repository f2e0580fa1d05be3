"""Functions for workers of a sweep, in a module that they can import."""

import os
import time
from pathlib import Path

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError


def square(number: int, log: str = "", sleep_s: float = 0.0) -> dict[str, pl.DataFrame]:
    """The square of a number, slowly; leaves a mark in the log folder each time it really runs."""
    time.sleep(sleep_s)
    if log:
        (Path(log) / f"{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return {"squares": pl.DataFrame({"number": [number], "square": [number * number]})}


def refuse(number: int) -> dict[str, pl.DataFrame]:
    """Fails for 3, with an error whose facts do not survive pickling."""
    if number == 3:
        raise InputError("three is refused", "take four", file="numbers.csv", row=3)
    return square(number)


def break_down(number: int) -> dict[str, pl.DataFrame]:
    """Fails in a way nobody planned."""
    return {"x": pl.DataFrame({"y": [1 / (number - number)]})}


def vanish(number: int) -> dict[str, pl.DataFrame]:
    """Ends the worker itself."""
    os._exit(17)


def mend(number: int) -> dict[str, pl.DataFrame]:
    """Always something the user can mend."""
    raise UserError(f"{number} can be mended.")


def burn(task: int, rounds: int) -> dict[str, pl.DataFrame]:
    """Work for the processor alone: so many rounds of a linear congruential generator."""
    state = task
    for _ in range(rounds):
        state = (1_103_515_245 * state + 12_345) % 2**31
    return {"states": pl.DataFrame({"task": [task], "state": [state]})}


def begun(number: int, log: str, sleep_s: float) -> dict[str, pl.DataFrame]:
    """A square that leaves its mark before it is slow: one that is cut short has left one too."""
    (Path(log) / f"{number}-{os.getpid()}-{time.time_ns()}").touch()
    return square(number, sleep_s=sleep_s)


def heavy(number: int, floats: int) -> dict[str, pl.DataFrame]:
    """A table of so many random numbers, 8 bytes each on the disk as in memory."""
    return {"numbers": pl.DataFrame({"value": np.random.default_rng(number).random(floats)})}
