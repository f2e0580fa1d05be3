"""The parts of a cluster that changes its size, put together on a run's clock."""

from collections.abc import Callable

import numpy as np

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.lowered import DECODE
from workbench.serving.model.scaled import (
    ASSIST_COLUMNS,
    CHAIN_COLUMNS,
    HOP_COLUMNS,
    LOAD_COLUMNS,
    STATE_COLUMNS,
    TICK_COLUMNS,
    Scaling,
)
from workbench.serving.simulated.autoscaler import Autoscaler
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.fleet_log import FleetLog
from workbench.serving.simulated.helping import Helping
from workbench.serving.simulated.host_cache import HostCache
from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.instants import Instants
from workbench.serving.simulated.links import Links
from workbench.serving.simulated.router import Router
from workbench.serving.simulated.row import Row
from workbench.serving.simulated.weights import Weights


class Scaled:
    """Rows on places, their weights, and the autoscaler over them."""

    def __init__(
        self, given: Scaling, instances: list[Instance], router: Router, links: Links | None, clock: Clock,
        instants: Instants,
    ):  # fmt: skip
        self.clock, self.router, self.log = clock, router, FleetLog(clock, given.tick_s)
        models = len(given.bytes)
        groups = [instance.model + models * (instance.role == DECODE) for instance in instances]
        columns = (given.place.tolist(), given.host.tolist(), given.start_state.tolist(), given.piped_form.tolist())
        rows = [Row(*row) for row in zip(instances, groups, *columns, strict=True)]
        self.fleet = Fleet(rows, given.keep_s.tolist(), router, clock, instants, self.log)
        self.fleet.caches += [self._cache(given, host) for host in range(len(given.cache_bytes))]
        self.weights = Weights(given, self.fleet, links, clock, instants, self.log)
        self.fleet.resident = lambda row: self.weights.begin_resident(row.group, [row])
        self.helping = Helping(given, self.fleet, self.weights.chains, clock) if links else None
        self.autoscaler = Autoscaler(given, self.fleet, self.weights, router, self.log, clock, instants.ticks)

    def _cache(self, given: Scaling, host: int) -> HostCache:
        return HostCache(
            given.cache_bytes[host].item(), given.ttl_s.tolist(), given.bytes.tolist(),
            lambda model: self.fleet.holds(host, model), self.clock, np.flatnonzero(given.cached[host]).tolist(),
            np.flatnonzero(given.pinned[host]).tolist(),
        )  # fmt: skip

    def start(self, all_done: Callable[[], bool], nothing_to_come: Callable[[], bool]) -> None:
        """Let the ticks begin; see `Autoscaler.live`."""
        self.clock.process(self.autoscaler.live(all_done, nothing_to_come))

    def fail(self, place: int) -> None:
        """A place fails, with whatever is on it."""
        row = self.fleet.fail(place)
        if row:
            self.weights.lose(row)

    def recover(self, place: int) -> None:
        """A place is there again."""
        self.fleet.recover(place)

    def update(self, model: int) -> None:
        """A model gets a new version of its weights."""
        self.fleet.outdate(model)
        self.weights.outdate(model)
        self.router.hand_out(model)
        self.router.hand_on(model)

    def lose_ports(self, ports: list[int]) -> None:
        """Some links have failed."""
        self.weights.chains.lose_ports(ports)

    def tables(self) -> dict[str, np.ndarray]:
        """What was written down, as `Outcome` has it."""
        loads = [
            (x.start_s, x.end_s, x.row.index, x.tier, x.source_count, x.operation, x.first_token_s, x.helped, x.piped_s)
            for x in self.log.loads
        ]
        sent = self.log.chains
        chains = [(x.start_s, x.end_s, x.stop_s, number, source, x.size) for x, number, source, _ in sent]
        hops = [(k, row.index) for k, (*_, rows) in enumerate(sent) for row in rows]
        return {
            "states": _table(self.log.states, STATE_COLUMNS),
            "loads": _table(loads, LOAD_COLUMNS),
            "ticks": _table(self.log.ticks, TICK_COLUMNS),
            "chains": _table(chains, CHAIN_COLUMNS),
            "hops": _table(hops, HOP_COLUMNS),
            "assists": _table(self.helping.table() if self.helping else [], ASSIST_COLUMNS),
        }


def _table(rows: list[tuple], columns: tuple[str, ...]) -> np.ndarray:
    return np.array(rows, dtype=np.float64).reshape(-1, len(columns))
