"""The processes of one multicast: every port walks its list of transfers, or all nodes step together."""

import itertools
from collections.abc import Generator, Iterable

import numpy as np
import simpy

from workbench.queueing.simulated.clock import Clock
from workbench.transfer.model.network import Network
from workbench.transfer.policy import Schedule, replan
from workbench.transfer.simulated.disturbance import Background
from workbench.transfer.simulated.fabric import Fabric, Flow
from workbench.transfer.simulated.instants import DEATH, FLOW_JOINS


class Multicast:
    """State and processes of one message on its way from the holders to everybody.

    Parameters:
        clock, fabric, network: where it runs.
        block_bytes: float (blocks,).
        held: bool (nodes, blocks), what nodes hold at first.
        labels: model and version for the table of transfers.
    """

    def __init__(
        self,
        clock: Clock,
        fabric: Fabric,
        network: Network,
        block_bytes: np.ndarray,
        held: np.ndarray,
        labels: tuple[str, str],
    ):
        self.clock, self.fabric, self.network = clock, fabric, network
        self.block_bytes, self.labels = block_bytes, labels
        self.arrival_s = np.where(held, 0.0, np.inf)
        self.dead: set[int] = set()
        self.plans: list[Schedule] = []
        self._arrived: dict[tuple[int, int], simpy.Event] = {}
        self._flows: dict[Flow, None] = {}
        self._beside: dict[Flow, None] = {}
        self._over: list[simpy.Event] = []
        self._plan_number = 0

    def dataflow(self, schedule: Schedule) -> None:
        """Start when sender and receiver are free and the block is there; each node keeps the order of its lists.

        A port is a node's way out of or into its host, or its way inside the host: a transfer by NIC does not wait for
        one over the local fabric.
        """
        self.plans.append(schedule)
        self._plan_number += 1
        self._over = over = [self.clock.event() for _ in schedule.step]
        before: list[simpy.Event | None] = []
        senders: dict[tuple[int, bool], list[int]] = {}
        receivers: dict[tuple[int, bool], int] = {}
        rows = list(_rows(schedule))
        for index, (source, target, _) in enumerate(rows):
            local = self.network.local(source, target)
            senders.setdefault((source, local), []).append(index)
            previous = receivers.get((target, local))
            before.append(None if previous is None else over[previous])
            receivers[target, local] = index
        for indices in senders.values():
            todo = [(index, *rows[index]) for index in indices]
            self.clock.process(self._send_all(self._plan_number, todo, before, over))

    def _send_all(
        self,
        plan_number: int,
        todo: list[tuple[int, int, int, int]],
        before: list[simpy.Event | None],
        over: list[simpy.Event],
    ) -> Generator[simpy.Event, bool, None]:
        for index, source, target, block in todo:
            while not over[index].triggered:  # a death may have called the transfer off
                waits = [event for event in (before[index], self._holding(source, block)) if event is not None]
                unmet = next((event for event in waits if not event.processed), None)
                if unmet is None:
                    break
                yield unmet | over[index]
            if plan_number != self._plan_number or source in self.dead:
                return
            if over[index].triggered:
                continue
            if (yield from self._send(source, target, block)):
                self._deliver(target, block)
            if not over[index].triggered:
                over[index].succeed()

    def barrier(self, schedule: Schedule) -> Generator[simpy.Event, object, None]:
        """Process: the transfers of a step start together when all of the step before have ended."""
        self.plans.append(schedule)
        numbered = zip(schedule.step.tolist(), _rows(schedule), strict=True)
        for _, together in itertools.groupby(numbered, key=lambda pair: pair[0]):
            yield self.clock.all_of([self.clock.process(self._step(*row)) for _, row in together])

    def _step(self, source: int, target: int, block: int) -> Generator[simpy.Event, bool, None]:
        if (yield from self._send(source, target, block)):
            self._deliver(target, block)

    def _send(self, source: int, target: int, block: int) -> Generator[simpy.Event, bool, bool]:
        flow = self.fabric.start(
            self.network.path(source, target),
            float(self.block_bytes[block]),
            "weights",
            (source, target, block, *self.labels),
            self.network.overhead_s(source, target),
        )
        self._flows[flow] = None
        arrived = yield flow.ended
        del self._flows[flow]
        return arrived

    def _holding(self, node: int, block: int) -> simpy.Event | None:
        if self.arrival_s[node, block] < np.inf:
            return None
        return self._arrived.setdefault((node, block), self.clock.event())

    def _deliver(self, node: int, block: int) -> None:
        if self.arrival_s[node, block] == np.inf:
            self.arrival_s[node, block] = self.clock.now
            if (waiting := self._arrived.pop((node, block), None)) is not None:
                waiting.succeed()

    def beside(self, traffic: Background) -> Generator[simpy.Event, bool, None]:
        """Process: other traffic that shares the links; it ends when it has arrived or one of its ends dies."""
        yield self.clock.at(traffic.start_s, FLOW_JOINS)
        if not self.dead.isdisjoint((traffic.source, traffic.target)):
            return
        path = self.network.path(traffic.source, traffic.target)
        labels = (traffic.source, traffic.target, None, "", "")
        flow = self.fabric.start(path, traffic.bytes, traffic.kind, labels, limit_bytes_per_s=traffic.bytes_per_s)
        self._beside[flow] = None
        yield flow.ended
        del self._beside[flow]

    def die(self, node: int, time_s: float, detect_s: float | None) -> None:
        """Let a node die; `detect_s` seconds later the survivors re-plan (None: they carry on as they can)."""
        self.clock.at(time_s, DEATH).callbacks.append(lambda _: self._died(node, detect_s))

    def _died(self, node: int, detect_s: float | None) -> None:
        self.dead.add(node)
        for flow in [flow for flow in (*self._flows, *self._beside) if node in flow.labels[:2]]:
            self.fabric.cut(flow)
        if self._over:  # a dataflow run: call off whatever the dead node would still send or receive
            for over, (source, target, _) in zip(self._over, _rows(self.plans[-1]), strict=True):
                if node in (source, target) and not over.triggered:
                    over.succeed()
        if detect_s is not None:
            self.clock.process(self._recover(self.clock.now + detect_s))

    def _recover(self, noticed_s: float) -> Generator[simpy.Event, object, None]:
        yield self.clock.at(noticed_s, DEATH)
        self._plan_number += 1  # whoever walks the plan so far stops before its next transfer
        mine = self._plan_number
        while self._flows:
            yield self.clock.all_of([flow.ended for flow in self._flows])
        if mine != self._plan_number:  # another death has been noticed meanwhile and re-plans for both
            return
        held = np.isfinite(self.arrival_s)
        if not np.delete(held, sorted(self.dead), axis=0).all():
            self.dataflow(replan(self.plans[0], self.dead, held))


def _rows(schedule: Schedule) -> Iterable[tuple[int, int, int]]:
    return zip(schedule.source.tolist(), schedule.target.tolist(), schedule.block.tolist(), strict=True)
