"""Waiting for plain tasks: one result a worker, or one clear error."""

import time
from collections.abc import Sequence
from typing import Any

from workbench.executor.faults import RunFailed
from workbench.executor.processes import Worker
from workbench.executor.watching import HEARTBEAT_S, Done, Due, Failed, Said, StopWanted, watch


def gather(
    workers: Sequence[Worker], beats, timeout_s: float, stop: StopWanted = None, heartbeat_s: float = HEARTBEAT_S
) -> list[Any]:
    """Wait for the results of the tasks given to workers, in the workers' order.

    Parameters:
        workers: of a lease, each with a task.
        beats: the pool's signs of life.
        timeout_s: longest time until the last has ended.
        stop: asked ten times a second whether to give up.
        heartbeat_s: silence after which a worker counts as hung; longer for tasks that import or compile much.

    Errors: `RunFailed` when a task raises, a process is lost, or time is up; `RunStopped` when `stop` says so.
    """
    results: dict[int, Any] = {}
    for event in watch(workers, beats, alarms=[time.monotonic() + timeout_s], heartbeat_s=heartbeat_s, stop=stop):
        match event:
            case Done(number, value):
                results[number] = value
            case Said():
                continue
            case Due():
                raise RunFailed(f"A real run took longer than the {timeout_s:.0f} s it may; allow more time.")
            case Failed(number, text):
                raise RunFailed(f"Worker {number} failed with {text}.")
            case _:
                raise RunFailed(f"The process of worker {event.worker} was lost while it ran a task; run it again.")
        if len(results) == len(workers):
            break
    return [results[worker.number] for worker in workers]
