"""Driving a set of workers through one run of transfers: agreed start, planted faults, detection, calling off."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workbench.executor.faults import Kill, RunFailed, Stop
from workbench.executor.lookout import Lookout, Loss
from workbench.executor.processes import Worker
from workbench.executor.relay import Plan, Report, relay
from workbench.executor.watching import HEARTBEAT_S, Died, Done, Due, Failed, Hung, Said, StopWanted, watch

LEAD_S = 0.1


class Drive(NamedTuple):
    """How a run ended: agreed start (`time.monotonic`), reports by node, and what was lost on the way."""

    start_s: float
    reports: dict[int, Report]
    losses: list[Loss]


def drive(
    workers: Sequence[Worker],
    plans: Mapping[int, Plan],
    beats,
    drills: Sequence[Kill | Stop] = (),
    *,
    timeout_s: float,
    heartbeat_s: float,
    stop: StopWanted = None,
) -> Drive:
    """Run the plans, one a worker, and return when all have ended or a lost process has made the others hand in.

    Parameters:
        workers: the workers that take part; a worker's number is its node.
        plans: plan of each node.
        beats: the pool's signs of life.
        drills: faults to be caused at times after the agreed start.
        timeout_s: longest time from the start to the end.
        heartbeat_s: silence after which a worker counts as hung.
        stop: says whether the run is to end.

    Errors: `RunFailed` when the run takes too long, or a worker fails while no process was lost; `RunStopped` when
        `stop` says so.
    """
    for worker in workers:
        worker.give(relay, plans[worker.number])
    said = all_said(workers, beats, timeout_s, stop)
    for worker in workers:
        worker.tell(tuple(said[member.number] for member in workers))
    all_said(workers, beats, timeout_s, stop)
    start_s = time.monotonic() + LEAD_S
    for worker in workers:
        worker.tell(start_s)
    lookout = Lookout(workers, timeout_s)
    lookout.drill(start_s, drills)
    lookout.limit(start_s)
    for event in watch(workers, beats, alarms=lookout.alarms, heartbeat_s=heartbeat_s, stop=stop):
        match event:
            case Done(node, report):
                lookout.handed_in(node, report)
            case Died(node, at_s):
                lookout.lost(node, "died", at_s)
            case Hung(node, at_s):
                lookout.lost(node, "hung", at_s)
            case Due(alarm):
                lookout.due(alarm)
            case Failed(node, text):
                raise RunFailed(f"Node {node} failed with {text}.")
            case Said():
                continue
        if lookout.all_accounted():
            break
    return Drive(start_s, lookout.reports, lookout.losses)


def all_said(
    workers: Sequence[Worker], beats, timeout_s: float, stop: StopWanted = None, heartbeat_s: float = HEARTBEAT_S
) -> dict[int, Any]:
    """What each worker says next, by its number, once all have spoken.

    Parameters:
        workers, beats, stop: as of `drive`.
        timeout_s: longest time until the last has spoken.
        heartbeat_s: silence after which a worker counts as hung; longer for tasks that import or compile much.

    Errors: `RunFailed` when a task raises or ends, a process is lost, or time is up; `RunStopped` when `stop` says so.
    """
    said: dict[int, Any] = {}
    alarms = [time.monotonic() + timeout_s]
    for event in watch(workers, beats, alarms=alarms, heartbeat_s=heartbeat_s, stop=stop):
        match event:
            case Said(node, value):
                said[node] = value
            case Due():
                raise RunFailed(f"The processes did not find each other within {timeout_s:.0f} s; run it again.")
            case Failed(node, text):
                raise RunFailed(f"Node {node} failed with {text}.")
            case _:
                raise RunFailed(f"The process of node {event.worker} was lost before the start; run it again.")
        if len(said) == len(workers):
            break
    return said
