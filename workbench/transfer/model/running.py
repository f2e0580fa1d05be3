"""A schedule's transfers on the clock: given the seconds of each transfer, when it starts and ends."""

from typing import NamedTuple

import numpy as np

from workbench.transfer.kernels.dataflow import barrier, dataflow
from workbench.transfer.model.arriving import Run
from workbench.transfer.policy import Schedule


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
    """
    count = len(schedule.step)
    travel = np.array(np.broadcast_to(travel_s, count), dtype=float)
    start, end = np.empty(count), np.empty(count)
    held = np.full((schedule.nodes, schedule.blocks), np.inf)
    held[list(schedule.holders)] = 0.0
    if run == "barrier":
        barrier(schedule.step, schedule.target, schedule.block, travel, held, start, end)
        return Times(start, end, held)
    busy = travel if busy_s is None else np.array(np.broadcast_to(busy_s, count), dtype=float)
    which = np.broadcast_to(port, count).astype(np.int64)
    kinds = int(which.max(initial=0)) + 1
    sends, receives = schedule.source * kinds + which, schedule.target * kinds + which
    free = [np.zeros(schedule.nodes * kinds) for _ in range(2)]
    dataflow(schedule.source, schedule.target, schedule.block, sends, receives, busy, travel, *free, held, start, end)
    return Times(start, end, held)
