"""A schedule's transfers on the clock: given the seconds of each transfer, when it starts and ends."""

from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.transfer.kernels.dataflow import barrier, dataflow
from workbench.transfer.model.arriving import Run, check_run
from workbench.transfer.policy import Schedule, check_columns


class Times(NamedTuple):
    """When things happen in one run of a schedule.

    Attributes:
        start_s, end_s: float (transfers,), in the schedule's order.
        held_s: float (nodes, blocks), when each node holds each block; infinite for never.
    """

    start_s: np.ndarray
    end_s: np.ndarray
    held_s: np.ndarray

    @property
    def complete_s(self) -> np.ndarray:
        """When each node holds everything, float (nodes,)."""
        return self.held_s.max(axis=1)


def run_times(
    schedule: Schedule,
    travel_s: np.ndarray | float,
    run: Run = "dataflow",
    busy_s: np.ndarray | float | None = None,
    port: np.ndarray | int = 0,
) -> Times:
    """Start and end of every transfer when each takes a known time, whatever else is going on.

    Parameters:
        schedule: a valid schedule.
        travel_s: seconds of each transfer, or one number for all.
        run: dataflow, or lock step (which knows no ports).
        busy_s: how long a transfer keeps its ports, by default as long as it travels.
        port: which of a node's ports each transfer uses, 0 unless a node has several (a NIC and a local fabric, say).

    Raises:
        `UnknownName` for an unknown run; `InputError` for a schedule that names what does not exist (whether it keeps
        the rules, `policy.check` says), and for times or ports that are none or not one a transfer.
    """
    check_run(run)
    step, source, target, block = check_columns(schedule)
    count = len(schedule.step)
    travel = _times("travel_s", travel_s, count)
    start, end = np.empty(count), np.empty(count)
    held = np.full((schedule.nodes, schedule.blocks), np.inf)
    held[list(schedule.holders)] = 0.0
    if run == "barrier":
        barrier(step, target, block, travel, held, start, end)
        return Times(start, end, held)
    busy = travel if busy_s is None else _times("busy_s", busy_s, count)
    ports, which = np.unique(_column("port", port, count, "iu"), return_inverse=True)
    kinds = max(1, len(ports))
    sends, receives = source * kinds + which, target * kinds + which
    free = [np.zeros(schedule.nodes * kinds) for _ in range(2)]
    dataflow(source, target, block, sends, receives, busy, travel, *free, held, start, end)
    return Times(start, end, held)


def _times(name: str, given: np.ndarray | float, count: int) -> np.ndarray:
    seconds = _column(name, given, count, "iuf").astype(float)
    if (wrong := ~(np.isfinite(seconds) & (seconds >= 0))).any():
        row = int(np.argmax(wrong))
        raise InputError(f"is {seconds[row]:g}", "give finite seconds of 0 or more", row=row + 1, field=name)
    return seconds


def _column(name: str, given: np.ndarray | float, count: int, kinds: str) -> np.ndarray:
    values = np.asarray(given)
    if values.dtype.kind not in kinds:
        raise InputError("is no number", "give one number, or one a transfer", field=name)
    if values.shape not in ((), (1,), (count,)):
        raise InputError(f"has the shape {values.shape}", f"give one number, or one for each of {count}", field=name)
    return np.broadcast_to(values, count)
