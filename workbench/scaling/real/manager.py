"""The parent of a serving run: it hands out requests, forms and dissolves pipelines, and sees who is lost."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from workbench.executor.driving import LEAD_S
from workbench.executor.faults import Kill, RunFailed, Stop
from workbench.executor.lookout import Lookout, Loss
from workbench.executor.processes import Worker
from workbench.executor.transformer_serving.node import READY, NodeReport, serve_node
from workbench.executor.transformer_serving.orders import (
    Begin,
    Dissolve,
    End,
    Forget,
    Left,
    NodePlan,
    Refused,
    Route,
    Spoke,
    Start,
    Took,
)
from workbench.executor.watching import Died, Done, Due, Failed, Hung, Said, StopWanted, watch
from workbench.scaling.policy import next_place
from workbench.scaling.real.book import Book, Told
from workbench.scaling.real.outcome import BlockRefused


class Watching(NamedTuple):
    """How a run is watched over: see `workbench.executor.driving.drive`."""

    timeout_s: float
    heartbeat_s: float
    stop: StopWanted


class PhaseEnd(NamedTuple):
    """How one phase ended.

    Attributes:
        start_s: its agreed start, on `time.monotonic`.
        reports: of the nodes that are left.
        losses: nodes that were lost.
        took: (node, block) -> when a target held a block.
        formed_s, dissolved_s: of each pipeline, NaN for never.
        begun: requests that were in a route when a node was lost.
    """

    start_s: float
    reports: dict[int, NodeReport]
    losses: list[Loss]
    took: dict[tuple[int, int], float]
    formed_s: list[float]
    dissolved_s: list[float]
    begun: list[int]


class Manager:
    """One phase: a multicast, and what is served meanwhile and after it.

    Parameters:
        workers: those that take part; a worker's number is its node.
        plans: of each node.
        pipelines: the first routes of all plans; the others are the targets alone, in the order of `targets`.
        targets: nodes that serve.
        book: of the requests; what is unfinished there is served.
        batch: most requests of a batch.
        watching: how it is watched over.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        plans: Mapping[int, NodePlan],
        pipelines: Sequence[Route],
        targets: Sequence[int],
        book: Book,
        batch: int,
        watching: Watching,
    ):
        self._workers, self._plans = {worker.number: worker for worker in workers}, plans
        self._pipelines, self._targets, self._book, self._batch = list(pipelines), list(targets), book, batch
        some = next(iter(plans.values()))
        self._blocks, self._routes = len(some.model.blocks), some.routes
        self._held = {node: set(plans[node].holds) for node in targets}
        self._line = [[request] for request in book.unfinished(range(len(book.prompts)))]
        self._batches: dict[int, tuple[int, list[int]]] = {}
        self._left: list[Left] = []
        self._next_batch = 0
        self._first_name = len(book.names)
        book.names += [f"pipeline {number}" for number in range(len(self._pipelines))]
        book.names += [f"node {node}" for node in targets]
        nan = [float("nan")] * len(self._pipelines)
        self._start_s = 0.0
        self._begun: list[int] = []
        self._took: dict[tuple[int, int], float] = {}
        self._formed_s, self._dissolved_s = list(nan), list(nan)
        self._ending = False
        self._watching, self._lookout = watching, Lookout(workers, watching.timeout_s)

    def run(self, beats, drills: Sequence[Kill | Stop] = ()) -> PhaseEnd:
        """Run the phase to its end: everything said and everything held, or a node lost and the others heard.

        Errors: `BlockRefused` when a node is given a block of another version or with other bytes; `RunFailed` when
            it takes too long, or a worker fails while no process was lost; `RunStopped` when `stop` says so.
        """
        for node, worker in self._workers.items():
            worker.give(serve_node, self._plans[node])
        look, watching = self._lookout, self._watching
        look.limit(time.monotonic())
        ready: set[int] = set()
        events = watch(
            list(self._workers.values()), beats, alarms=look.alarms, heartbeat_s=watching.heartbeat_s,
            stop=watching.stop,
        )  # fmt: skip
        for event in events:
            match event:
                case Said(node, value) if value == READY:
                    ready.add(node)
                    if len(ready) == len(self._workers):
                        self._begin(drills)
                case Said(node, value):
                    self._heard(node, value)
                case Done(node, report):
                    look.handed_in(node, report._replace(error="") if self._ending else report)
                case Died(node, at_s):
                    self._lost(node, "died", at_s)
                case Hung(node, at_s):
                    self._lost(node, "hung", at_s)
                case Due(alarm):
                    look.due(alarm)
                case Failed(node, text):
                    raise RunFailed(f"Node {node} failed with {text}.")
            if look.all_accounted():
                break
            if not self._ending and self._over():
                self._ending = True
                self._tell_all(End())
        return PhaseEnd(
            self._start_s, look.reports, look.losses, self._took, self._formed_s, self._dissolved_s, self._begun
        )

    def _begin(self, drills: Sequence[Kill | Stop]) -> None:
        self._start_s = time.monotonic() + LEAD_S
        self._lookout.drill(self._start_s, drills)
        self._tell_all(Start(self._start_s))
        self._hand_out()

    def _heard(self, node: int, value: object) -> None:
        match value:
            case Took(block, at_s):
                self._took[node, block] = at_s
                self._held[node].add(block)
                self._form()
                self._dissolve()
            case Spoke():
                self._spoke(value)
            case Left():
                self._left.append(value)
            case Refused(block, why):
                raise BlockRefused(node, block, why)
        self._take_back()
        self._hand_out()

    def _take_back(self) -> None:
        """Put batches that left a pipeline at the head of the line, once all that they said there has been heard."""
        for left in list(self._left):
            if any(self._book.item(item.request).left > item.left for item in left.items):
                continue
            self._left.remove(left)
            _, requests = self._batches.pop(left.batch)
            for request in requests:
                self._book.switches.append((request, len(self._book.told[request]), left.at_s))
                self._book.moves[request] += 1
            for member in {segment.node for segment in self._routes[left.route]}:
                self._workers[member].tell(Forget(tuple(requests)))
            self._line.insert(0, requests)

    def _spoke(self, spoke: Spoke) -> None:
        name = self._first_name + spoke.route
        for request, token, logits in zip(spoke.requests, spoke.tokens, spoke.logits, strict=True):
            self._book.told[request].append(Told(spoke.at_s, token, logits, name))
        route, requests = self._batches[spoke.batch]
        going = self._book.unfinished(requests)
        if ended := tuple(sorted(set(requests) - set(going))):
            for member in {segment.node for segment in self._routes[route]}:
                self._workers[member].tell(Forget(ended))
        if going:
            self._batches[spoke.batch] = route, going
        else:
            del self._batches[spoke.batch]

    def _form(self) -> None:
        for number, route in enumerate(self._pipelines):
            if np.isnan(self._formed_s[number]) and all(
                {*range(segment.first, segment.first + segment.count)} <= self._held[segment.node] for segment in route
            ):
                self._formed_s[number] = time.monotonic()

    def _dissolve(self) -> None:
        """A pipeline dissolves when all its members have everything."""
        for number, route in enumerate(self._pipelines):
            if self._serves(number) and all(self._complete(segment.node) for segment in route):
                self._dissolved_s[number] = time.monotonic()
                self._workers[route[0].node].tell(Dissolve(number))

    def _hand_out(self) -> None:
        """Give waiting batches places: complete nodes first, then pipelines, resumed batches before new ones."""
        if not self._start_s or self._lookout.losses:
            return
        while self._line:
            serving = [number for number in range(len(self._pipelines)) if self._serves(number)]
            busy = [route for route, _ in self._batches.values()]
            kept = serving if self._resumed(0) else {*serving, *(route for route in busy if self._piped(route))}
            inside = {segment.node for number in kept for segment in self._pipelines[number]}
            idle = [
                route
                for route, node in enumerate(self._targets, start=len(self._pipelines))
                if self._complete(node) and node not in inside and route not in busy
            ]
            in_flight = [busy.count(number) for number in serving]
            most = [len({segment.node for segment in self._pipelines[number]}) for number in serving]
            if (found := next_place(idle, in_flight, most)) is None:
                return
            kind, place = found
            self._start(place if kind == "replica" else serving[place])

    def _start(self, route: int) -> None:
        resumed, requests = self._resumed(0), self._line.pop(0)
        while self._line and len(requests) + len(self._line[0]) <= self._batch and self._resumed(0) == resumed:
            requests += self._line.pop(0)
        self._batches[self._next_batch] = route, requests
        items = tuple(self._book.item(request) for request in requests)
        self._workers[self._routes[route][0].node].tell(Begin(route, self._next_batch, items))
        self._next_batch += 1

    def _resumed(self, place: int) -> bool:
        """Whether a batch in the line has said something before; a dissolving pipeline's nodes wait for theirs."""
        return any(self._book.told[request] for request in self._line[place])

    def _piped(self, route: int) -> bool:
        return route < len(self._pipelines)

    def _serves(self, pipeline: int) -> bool:
        return not np.isnan(self._formed_s[pipeline]) and np.isnan(self._dissolved_s[pipeline])

    def _complete(self, node: int) -> bool:
        return len(self._held[node]) == self._blocks

    def _over(self) -> bool:
        """Whether everything has been said and every target holds everything."""
        said = not self._line and not self._batches
        return bool(self._start_s) and said and all(map(self._complete, self._targets))

    def _lost(self, node: int, kind: str, noticed_s: float) -> None:
        if not self._start_s:
            raise RunFailed(f"The process of node {node} was lost before the start; run it again.")
        if not self._lookout.losses:
            self._begun = [request for _, requests in self._batches.values() for request in requests]
        self._lookout.lost(node, kind, noticed_s)

    def _tell_all(self, word: object) -> None:
        for worker in self._workers.values():
            worker.tell(word)
