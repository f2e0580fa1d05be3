"""A whole run: the router, the instances, what arrives, what fails, and what scales, on one SimPy clock."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import isfinite, nextafter

import numpy as np

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.lowered import COLOCATED, DECODE, INSIDE, PREFILL, Lowered, Outcome, Requests
from workbench.serving.simulated.decoder import Decoder
from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.instants import Instants
from workbench.serving.simulated.links import Links
from workbench.serving.simulated.log import Log
from workbench.serving.simulated.migrations import Migrations
from workbench.serving.simulated.prefiller import Prefiller
from workbench.serving.simulated.request import Request
from workbench.serving.simulated.router import Router
from workbench.serving.simulated.scaled import Scaled

ROLES = {COLOCATED: Instance, PREFILL: Prefiller, DECODE: Decoder}


class Cluster:
    """Everything of one run, ready to start."""

    def __init__(self, lowered: Lowered, choose: Callable | None = None):
        """Nothing happens yet.

        Parameters:
            lowered: requests, instances and failures as arrays.
            choose: dispatches in place of the numbered policy; see `Router`.
        """
        count, asked = len(lowered.instances.model), lowered.requests
        self.clock, self.instants, self.log = Clock(), Instants(count), Log(count)
        self.requests = [Request(index, *row) for index, row in enumerate(_asked(asked))]
        self.instances = [
            ROLES[role](j, lowered.instances, asked.prefix_tokens, self.clock, self.instants, self.log)
            for j, role in enumerate(lowered.instances.role.tolist())
        ]
        models = 1 + max([*lowered.requests.model.tolist(), *lowered.instances.model.tolist()], default=-1)
        if lowered.scaling is not None:
            models = max(models, len(lowered.scaling.kind))
        self.router = Router(self.instances, models, int(lowered.route), self.clock, self.instants, choose)
        self.links = None
        if lowered.network is not None:
            self.links = Links(lowered.network, self.clock, self.instants.lands)
            kv_bytes = lowered.network.kv_bytes.tolist()
            self.router.migrations = Migrations(kv_bytes, self.instances, self.router, self.links)
        self.met = 0
        self.scaled, self.updated = None, bool(lowered.updates.time_s.size)
        if lowered.scaling is None:
            for instance in self.instances:
                instance.recover(self.router)
        else:
            self.scaled = Scaled(lowered.scaling, self.instances, self.router, self.links, self.clock, self.instants)
            self.scaled.start(self._all_done, lambda: self._nothing_to_come(lowered))
        self._expect(lowered)

    def _expect(self, lowered: Lowered) -> None:
        def meet(index: int) -> None:
            self.met += 1
            self.router.meet(self.requests[index])

        self.clock.process(self.clock.arrivals(lowered.requests.arrival_s, self.instants.arrives, meet))
        for time_s, index, back_s in _rows(lowered.failures):
            self.clock.process(self._outage(self.scaled or self, index, time_s, back_s))
        self._expect_outages(lowered)
        for time_s, model in _rows(lowered.updates):
            update = self.clock.at(time_s, self.instants.updates)
            update.callbacks.append(lambda _, model=model: self.scaled.update(model))

    def _expect_outages(self, lowered: Lowered) -> None:
        """Links fail and come back; of one instant in order of ports."""
        count = len(self.instances)
        place = list(range(count)) if lowered.scaling is None else lowered.scaling.place.tolist()
        places = 1 + max(place)

        def ports_of(port: int) -> list[int]:
            if port >= 2 * places:
                return [2 * count + port - 2 * places]
            return [row + count * (port >= places) for row in range(count) if place[row] == port % places]

        def fail(ports: list[int]) -> None:
            self.links.fail(ports)
            if self.scaled:
                self.scaled.lose_ports(ports)

        outages = [(port, time_s, back_s) for time_s, port, back_s in _rows(lowered.outages)]
        for port, time_s, back_s in sorted(outages):
            ports = ports_of(port)
            self.clock.at(time_s, self.instants.links_fail).callbacks.append(lambda _, ports=ports: fail(ports))
            back = self.clock.at(back_s, self.instants.links_return)
            back.callbacks.append(lambda _, ports=ports: self.links.come_back(ports))

    def _outage(self, breaks, index: int, time_s: float, back_s: float):
        """An instance, or a place of a cluster that changes its size, is down for a time."""
        yield self.clock.at(time_s, self.instants.fails + index)
        breaks.fail(index)
        if isfinite(back_s):
            yield self.clock.at(back_s, self.instants.recovers + index)
            breaks.recover(index)

    def fail(self, index: int) -> None:
        """An instance fails, and its requests go back to the router."""
        instance = self.instances[index]
        if self.router.migrations:
            self.router.migrations.stop(instance)
        self.router.meet_again(instance.fail(), instance.model)

    def recover(self, index: int) -> None:
        """An instance is there again."""
        instance = self.instances[index]
        instance.recover(self.router)
        self.router.hand_out(instance.model)
        self.router.hand_on(instance.model)

    def _all_done(self) -> bool:
        return all(request.status != INSIDE for request in self.requests)

    def _nothing_to_come(self, lowered: Lowered) -> bool:
        """Whether no arrival, failure, recovery or new version is still to come."""
        back_s = lowered.failures.back_s[np.isfinite(lowered.failures.back_s)]
        times = (lowered.failures.time_s, back_s, lowered.updates.time_s)
        later = any((time_s > self.clock.now).any() for time_s in times)
        return self.met == len(self.requests) and not later

    def run(self, until_s: float) -> None:
        """Everything up to and at `until_s`, where SimPy itself would stop just before it."""
        if until_s >= 0:
            self.clock.run(nextafter(until_s, np.inf) if isfinite(until_s) else None)

    def outcome(self) -> Outcome:
        made = self._column("made")
        end_s, at = self.log.ends()
        return Outcome(
            status=self._column("status", np.int8),
            first_token_s=self._column("first_token_s", float),
            finish_s=self._column("finish_s", float),
            wait_s=self._column("wait_s", float),
            instance=self._column("instance"),
            evictions=self._column("evictions"),
            moves=self._column("moves"),
            made=made,
            iteration_end_s=end_s,
            iteration_at=at,
            segments=self.log.segments(made),
            busy_s=np.array([instance.busy_s for instance in self.instances], dtype=float),
            peak_blocks=np.array([instance.blocks.peak for instance in self.instances], dtype=np.int64),
            failed_steps=np.array([instance.failed_steps for instance in self.instances], dtype=np.int64),
            cached=self._column("cached"),
            prefill=self._column("prefilled_on"),
            **(self._versions() if self.updated else {}),
            **({"flows": self.router.migrations.table()} if self.router.migrations else {}),
            **(self.scaled.tables() if self.scaled else {}),
        )

    def _versions(self) -> dict[str, np.ndarray]:
        """What runs with updates have."""
        loads = np.array([load.version for load in self.scaled.log.loads], dtype=np.int64)
        return {
            "weight_version": self._column("version"), "restarts": self._column("restarts"), "load_version": loads,
        }  # fmt: skip

    def _column(self, name: str, dtype=np.int64) -> np.ndarray:
        return np.array([getattr(request, name) for request in self.requests], dtype=dtype)


def _asked(requests: Requests) -> Iterator[tuple]:
    """The requests as plain Python values, each with its own list of hash blocks."""
    prefix, at = requests.prefix.tolist(), requests.prefix_at.tolist()
    prefixes = (prefix[begin:end] for begin, end in pairwise(at))
    return ((*row, own) for row, own in zip(_rows((*requests[:5], requests.rank)), prefixes, strict=True))


def _rows(columns) -> Iterator[tuple]:
    """The rows of several columns, as plain Python numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def simulate(lowered: Lowered, choose: Callable | None = None) -> Outcome:
    """What becomes of every request, by simulation: one SimPy event an engine step.

    Parameters:
        lowered: requests, instances and failures as arrays (SI units, time 0 at the first arrival).
        choose: a Python function that dispatches, of the signature that `policy.functions` states.
    """
    cluster = Cluster(lowered, choose)
    cluster.run(lowered.until_s)
    return cluster.outcome()
