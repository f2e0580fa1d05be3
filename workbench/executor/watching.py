"""Watching over workers: what they say, that they have died, that they have stopped giving signs of life."""

import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any, NamedTuple

from workbench.executor.desk import BEAT_S
from workbench.executor.faults import RunStopped
from workbench.executor.processes import Worker

LOOK_S = 0.1
"""Longest sleep of a watcher at a stretch."""

HEARTBEAT_S = 1.0
"""A worker that gives no sign of life for this long counts as hung; workers stamp one every 0.05 s."""


class Said(NamedTuple):
    """A running task said something."""

    worker: int
    value: Any


class Done(NamedTuple):
    """A task has ended with a result."""

    worker: int
    value: Any


class Failed(NamedTuple):
    """A task has ended with an error that it did not handle."""

    worker: int
    text: str


class Died(NamedTuple):
    """A worker process has ended; `at_s` is when that was noticed, on `time.monotonic`."""

    worker: int
    at_s: float


class Hung(NamedTuple):
    """A worker process has given no sign of life for a heartbeat."""

    worker: int
    at_s: float


class Due(NamedTuple):
    """An alarm has gone off; `alarm` is its place in the list of alarms."""

    alarm: int


Event = Said | Done | Failed | Died | Hung | Due

StopWanted = Callable[[], bool] | None
"""Asked ten times a second whether the run is to end; it may also raise an error of its own."""


def watch(
    workers: Sequence[Worker],
    beats,
    *,
    alarms: Sequence[float] = (),
    heartbeat_s: float = HEARTBEAT_S,
    stop: StopWanted = None,
) -> Iterator[Event]:
    """Yield what happens to workers, as it happens, for as long as the caller listens.

    A death is seen through the process's sentinel, within milliseconds. A hang is seen from a worker's stamps in shared
    memory; it is believed only when the stamp stays put while the watcher itself is awake, so that a machine that slept
    or a watcher that was starved raises no false alarm.

    Parameters:
        workers: the workers of a lease.
        beats: the pool's shared array of signs of life.
        alarms: instants of `time.monotonic` at which the caller wants to be woken; it may append more while it listens.
        heartbeat_s: see `HEARTBEAT_S`.
        stop: see `StopWanted`.

    Errors: `RunStopped` when `stop` says so. The workers' lease then ends those that are busy.
    """
    watched = {worker.number: worker for worker in workers}
    rung: set[int] = set()
    doubts: dict[int, tuple[float, float]] = {}
    while True:
        if stop is not None and stop():
            raise RunStopped
        for alarm, instant_s in enumerate(alarms):
            if alarm not in rung and instant_s <= time.monotonic():
                rung.add(alarm)
                yield Due(alarm)
        waits_s = [instant_s - time.monotonic() for alarm, instant_s in enumerate(alarms) if alarm not in rung]
        nap_s = max(0.0, min([LOOK_S, heartbeat_s / 10, *waits_s]))
        owners = {worker.connection: worker for worker in watched.values()}
        owners |= {worker.process.sentinel: worker for worker in watched.values()}
        for worker in dict.fromkeys(owners[thing] for thing in wait(list(owners), nap_s)):
            yield from _read(worker)
            if not worker.process.is_alive():
                del watched[worker.number]
                yield Died(worker.number, time.monotonic())
        for number in _silent(watched, beats, doubts, heartbeat_s):
            del watched[number]
            yield Hung(number, time.monotonic())


def _read(worker: Worker) -> Iterator[Event]:
    """All messages that have come from a worker; what a dead one sent before its death counts too."""
    try:
        while worker.connection.poll():
            kind, value = worker.connection.recv()
            if kind in ("done", "failed"):
                worker.busy = False
            yield {"said": Said, "done": Done, "failed": Failed}[kind](worker.number, value)
    except (EOFError, OSError):
        worker.process.join(BEAT_S)  # its end of the pipe is closed: the sentinel follows at once


def _silent(watched: dict[int, Worker], beats, doubts: dict[int, tuple[float, float]], heartbeat_s: float) -> list[int]:
    now = time.monotonic()
    silent = []
    for number in watched:
        beat = beats[number]
        if now - beat < 0.7 * heartbeat_s:
            doubts.pop(number, None)
        elif doubts.get(number, (0.0, now))[0] != beat:
            doubts[number] = beat, now
        elif now - doubts[number][1] >= 0.2 * heartbeat_s:
            silent.append(number)
    return silent
