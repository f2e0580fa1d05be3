"""Driving a set of workers through one run of transfers: agreed start, planted faults, detection, calling off."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workbench.executor.faults import Kill, RunFailed, Stop
from workbench.executor.processes import Worker
from workbench.executor.relay import Plan, Report, relay
from workbench.executor.watching import Died, Done, Due, Failed, Hung, Said, StopWanted, watch

LEAD_S = 0.1
GRACE_S = 0.5
HAND_IN_S = 5.0


class Loss(NamedTuple):
    """A process that died or hung; `fault_s` is when a drill made it so, None when it went by itself."""

    node: int
    kind: str
    noticed_s: float
    fault_s: float | None


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
    return _Run(workers, start_s, drills, timeout_s).watched(beats, heartbeat_s, stop)


class _Run:
    """The parent's knowledge of one run, event by event."""

    def __init__(self, workers: Sequence[Worker], start_s: float, drills: Sequence[Kill | Stop], timeout_s: float):
        self._workers = {worker.number: worker for worker in workers}
        self._drills, self._timeout_s = drills, timeout_s
        self._alarms: list[float] = []
        self._meanings: list[Kill | Stop | str] = []
        for drill in drills:
            self._wake_at(start_s + drill.at_s, drill)
        self._wake_at(start_s + timeout_s, "time is up")
        self._caused: dict[int, float] = {}
        self._ended = Drive(start_s, {}, [])

    def watched(self, beats, heartbeat_s: float, stop: StopWanted) -> Drive:
        workers = list(self._workers.values())
        for event in watch(workers, beats, alarms=self._alarms, heartbeat_s=heartbeat_s, stop=stop):
            match event:
                case Done(node, report):
                    self._done(node, report)
                case Died(node, at_s):
                    self._lost(Loss(node, "died", at_s, self._caused.get(node)))
                case Hung(node, at_s):
                    self._workers[node].kill()  # nothing of it may come back to life later
                    self._lost(Loss(node, "hung", at_s, self._caused.get(node)))
                case Due(alarm):
                    self._due(alarm)
                case Failed(node, text):
                    raise RunFailed(f"Node {node} failed with {text}.")
                case Said():
                    continue
            if len({*self._ended.reports, *(loss.node for loss in self._ended.losses)}) == len(self._workers):
                break
        return self._ended

    def _done(self, node: int, report: Report) -> None:
        self._ended.reports[node] = report
        if report.error and not self._ended.losses:
            self._wake_at(time.monotonic() + GRACE_S, "no death explains the error")

    def _lost(self, loss: Loss) -> None:
        if not self._ended.losses:
            self._wake_at(loss.noticed_s + HAND_IN_S, "hand in")
        self._ended.losses.append(loss)
        for node, worker in self._workers.items():
            if node not in self._ended.reports:
                worker.call_off(f"node {loss.node} {loss.kind}")

    def _wake_at(self, instant_s: float, meaning: Kill | Stop | str) -> None:
        self._alarms.append(instant_s)
        self._meanings.append(meaning)

    def _due(self, alarm: int) -> None:
        match self._meanings[alarm]:
            case Kill(node=node):
                self._caused[node] = time.monotonic()
                self._workers[node].kill()
            case Stop(node=node):
                self._caused[node] = time.monotonic()
                self._workers[node].stop()
            case "time is up":
                raise RunFailed(f"The run took longer than the {self._timeout_s:.0f} s it may; allow more time.")
            case "hand in":
                gone = {loss.node for loss in self._ended.losses}
                late = sorted(set(self._workers) - set(self._ended.reports) - gone)
                raise RunFailed(f"Node {late[0]} did not hand in what it holds within {HAND_IN_S:.0f} s of a loss.")
            case _ if not self._ended.losses:
                node, report = next(item for item in self._ended.reports.items() if item[1].error)
                raise RunFailed(f"A link of node {node} failed while all processes live ({report.error}).")


def all_said(workers: Sequence[Worker], beats, timeout_s: float, stop: StopWanted = None) -> dict[int, Any]:
    """What each worker says, once all have spoken: first where its memory is, then that it is ready to start."""
    said: dict[int, Any] = {}
    for event in watch(workers, beats, alarms=[time.monotonic() + timeout_s], stop=stop):
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
