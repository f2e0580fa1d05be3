"""What the parent of a run looks out for beside its workers' words: drills, lost processes, and time running out."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from workbench.executor.faults import Kill, RunFailed, Stop
from workbench.executor.processes import Worker

GRACE_S = 0.5
HAND_IN_S = 5.0


class Loss(NamedTuple):
    """A process that died or hung; `fault_s` is when a drill made it so, None when it went by itself."""

    node: int
    kind: str
    noticed_s: float
    fault_s: float | None


class Lookout:
    """The alarms of one run, and what follows from a loss.

    Parameters:
        workers: those that take part; a worker's number is its node.
        timeout_s: longest time the run may take.

    Attributes:
        alarms: instants for `workbench.executor.watching.watch`; more are added on the way.
        reports: what nodes have handed in; each has an `error`, "" where nothing went wrong.
        losses: nodes that are gone.
    """

    def __init__(self, workers: Sequence[Worker], timeout_s: float):
        self.alarms: list[float] = []
        self.reports: dict[int, Any] = {}
        self.losses: list[Loss] = []
        self._workers = {worker.number: worker for worker in workers}
        self._timeout_s = timeout_s
        self._meanings: list[Kill | Stop | str] = []
        self._caused: dict[int, float] = {}

    def limit(self, begun_s: float) -> None:
        """Give up when the run, counted from an instant of `time.monotonic`, takes too long."""
        self._wake_at(begun_s + self._timeout_s, "time is up")

    def drill(self, start_s: float, drills: Sequence[Kill | Stop]) -> None:
        """Cause faults at their times after the start."""
        for drill in drills:
            self._wake_at(start_s + drill.at_s, drill)

    def handed_in(self, node: int, report: Any) -> None:
        """A node has ended; an error must be explained by a loss before long."""
        self.reports[node] = report
        if report.error and not self.losses:
            self._wake_at(time.monotonic() + GRACE_S, "no death explains the error")

    def lost(self, node: int, kind: str, noticed_s: float) -> None:
        """A node is gone: call off the others, which hand in what they hold."""
        if kind == "hung":
            self._workers[node].kill()  # nothing of it may come back to life later
        if not self.losses:
            self._wake_at(noticed_s + HAND_IN_S, "hand in")
        self.losses.append(Loss(node, kind, noticed_s, self._caused.get(node)))
        for other, worker in self._workers.items():
            if other not in self.reports:
                worker.call_off(f"node {node} {kind}")

    def all_accounted(self) -> bool:
        """Whether every node has handed in or is gone."""
        return {*self.reports, *(loss.node for loss in self.losses)} == set(self._workers)

    def due(self, alarm: int) -> None:
        """An alarm has gone off; raises `RunFailed` where it says that the run cannot go on."""
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
                gone = {loss.node for loss in self.losses}
                late = sorted(set(self._workers) - set(self.reports) - gone)
                raise RunFailed(f"Node {late[0]} did not hand in what it holds within {HAND_IN_S:.0f} s of a loss.")
            case _ if not self.losses:
                node, report = next(item for item in self.reports.items() if item[1].error)
                raise RunFailed(f"A link of node {node} failed while all processes live ({report.error}).")

    def _wake_at(self, instant_s: float, meaning: Kill | Stop | str) -> None:
        self.alarms.append(instant_s)
        self._meanings.append(meaning)
