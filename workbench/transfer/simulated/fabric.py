"""Flows that hold every resource on their path and share each of them max-min fairly."""

import math
from collections.abc import Sequence

import numpy as np
import simpy

from workbench.queueing.simulated.clock import Clock
from workbench.records import whole
from workbench.transfer.kernels.fairness import max_min_fair
from workbench.transfer.simulated.instants import FLOW_ENDS, FLOW_JOINS, SETTLE
from workbench.transfer.simulated.ledger import Ledger


class Flow:
    """Some bytes on their way along a path.

    Attributes:
        ended: SimPy event; its value says whether all bytes arrived (False: the flow was cut).
        moved_bytes: what has arrived up to the last change of its rate.
    """

    __slots__ = (
        "_limit",
        "_since_s",
        "end_s",
        "ended",
        "kind",
        "labels",
        "moved_bytes",
        "path",
        "rate",
        "size_bytes",
        "start_s",
    )

    def __init__(self, clock: Clock, path: tuple[int, ...], size_bytes: float, kind: str, labels: tuple):
        self.path, self.size_bytes, self.kind, self.labels = path, size_bytes, kind, labels
        self.start_s, self.end_s = clock.now, math.inf
        self.ended: simpy.Event = clock.event()
        self.moved_bytes, self.rate, self._since_s = 0.0, 0.0, clock.now
        self._limit: int | None = None

    def set_rate(self, now_s: float, rate: float) -> None:
        """Go on at another rate; the end moves accordingly. Nothing is recomputed while the rate stays."""
        if rate == self.rate:
            return
        self.book(now_s)
        self.rate = rate
        self.end_s = now_s + (self.size_bytes - self.moved_bytes) / rate if rate > 0 else math.inf

    def book(self, now_s: float) -> None:
        """Count the bytes moved since the rate last changed."""
        if self.rate > 0 and now_s > self._since_s:
            self.moved_bytes = min(self.size_bytes, self.moved_bytes + self.rate * (now_s - self._since_s))
        self._since_s = now_s


class Fabric:
    """All flows of a simulation. Rates are shared out anew at every instant at which a flow starts or ends.

    Parameters:
        clock: the simulation's clock.
        bytes_per_s: capacity of each resource.
        names: name of each resource.
    """

    def __init__(self, clock: Clock, bytes_per_s: Sequence[float], names: Sequence[str]):
        self.clock, self.ledger = clock, Ledger(names)
        self._capacity, self._resources = list(bytes_per_s), len(names)
        self._unused_limits: list[int] = []
        self._flows: dict[Flow, None] = {}  # in order of joining
        self._joining: dict[Flow, None] = {}
        self._settling = False
        self._wake_number = 0

    def start(
        self,
        path: tuple[int, ...],
        size_bytes: float,
        kind: str,
        labels: tuple = (),
        overhead_s: float = 0.0,
        limit_bytes_per_s: float | None = None,
    ) -> Flow:
        """Send bytes along a path.

        Parameters:
            path: indices of the resources that the flow holds.
            size_bytes: how much.
            kind: what the bytes are; loads are kept apart by it.
            labels: source, target, block, model, version for the table of transfers.
            overhead_s: seconds during which the flow moves nothing yet and holds no bandwidth.
            limit_bytes_per_s: most that the sender offers, None for all it can get.

        Raises:
            `InputError` for a path with a resource that there is not: rates are shared out by index, unchecked.
        """
        for index in path:
            whole(index, "path", 0, self._resources - 1)
        flow = Flow(self.clock, path, size_bytes, kind, labels)
        if limit_bytes_per_s is not None:
            flow._limit = self._limit(limit_bytes_per_s)
        self._joining[flow] = None
        if overhead_s > 0:
            self.clock.at(self.clock.now + overhead_s, FLOW_JOINS).callbacks.append(lambda _: self._join(flow))
        else:
            self._join(flow)
        return flow

    def cut(self, flow: Flow) -> None:
        """End a flow before its time; what it has moved is written down as lost."""
        if flow in self._flows or flow in self._joining:
            flow.book(self.clock.now)
            self._leave(flow, arrived=False)

    def _join(self, flow: Flow) -> None:
        if flow in self._joining:  # it may have been cut meanwhile
            del self._joining[flow]
            flow.book(self.clock.now)
            self._flows[flow] = None
            self._settle_soon()

    def _leave(self, flow: Flow, arrived: bool) -> None:
        self._flows.pop(flow, None)
        self._joining.pop(flow, None)
        if flow._limit is not None:
            self._unused_limits.append(flow._limit)
        source, target, block, model, version = flow.labels
        kind = flow.kind if arrived else f"{flow.kind} lost"
        row = (flow.start_s, self.clock.now, source, target, block, flow.moved_bytes, kind, model, version)
        self.ledger.transfer(row, flow.path, flow.kind, flow.moved_bytes)
        flow.ended.succeed(arrived)
        self._settle_soon()

    def _limit(self, bytes_per_s: float) -> int:
        if self._unused_limits:
            index = self._unused_limits.pop()
            self._capacity[index] = bytes_per_s
            return index
        self._capacity.append(bytes_per_s)
        return len(self._capacity) - 1

    def _settle_soon(self) -> None:
        if not self._settling:
            self._settling = True
            self.clock.at(self.clock.now, SETTLE).callbacks.append(self._settle)

    def _settle(self, _: simpy.Event) -> None:
        """Share the resources out, and sleep until the next flow ends."""
        self._settling = False
        now = self.clock.now
        flows = list(self._flows)
        held = [flow.path if flow._limit is None else (*flow.path, flow._limit) for flow in flows]
        first = np.zeros(len(flows) + 1, dtype=np.int64)
        np.cumsum([len(path) for path in held], out=first[1:])
        resource = np.array([index for path in held for index in path], dtype=np.int64)
        rates = np.empty(len(flows))
        max_min_fair(first, resource, np.array(self._capacity, dtype=float), rates)
        load: dict[tuple[int, str], float] = {}
        for flow, rate in zip(flows, rates.tolist(), strict=True):
            flow.set_rate(now, rate)
            for index in flow.path:
                load[index, flow.kind] = load.get((index, flow.kind), 0.0) + rate
        self.ledger.load(now, load)
        self._wake_number += 1
        number = self._wake_number
        if flows:
            wake_s = min(flow.end_s for flow in flows)
            if wake_s < math.inf:
                self.clock.at(wake_s, FLOW_ENDS).callbacks.append(lambda _: self._finish(number))

    def _finish(self, number: int) -> None:
        if number != self._wake_number:  # rates have changed since; another wake-up is under way
            return
        for flow in [flow for flow in self._flows if flow.end_s <= self.clock.now]:
            flow.moved_bytes = flow.size_bytes
            self._leave(flow, arrived=True)
