"""How weights come to rows that start: from nowhere, in a given time, from the host's memory, its SSD, other rows."""

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.scaled import Scaling
from workbench.serving.policy.scalers import (
    ALL_CACHED,
    CHAINS,
    DRAM_TIER,
    FIXED,
    FIXED_TIER,
    IDEAL,
    IDEAL_TIER,
    MULTICAST,
    MULTICAST_TIER,
    RESIDENT_TIER,
    SSD_TIER,
)
from workbench.serving.simulated.chains import Chain, Chains
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.fleet_log import FleetLog
from workbench.serving.simulated.instants import Instants
from workbench.serving.simulated.links import Links
from workbench.serving.simulated.load import Load
from workbench.serving.simulated.operation import Operation
from workbench.serving.simulated.row import Row
from workbench.serving.simulated.shared_ssd import SharedSSD


class Weights:
    """The loads on their way, in operations: what each row waits for, what ends that, and what a failure does to it."""

    def __init__(
        self, given: Scaling, fleet: Fleet, links: Links | None, clock: Clock, instants: Instants, log: FleetLog
    ):  # fmt: skip
        self.fleet, self.clock, self.instants, self.log = fleet, clock, instants, log
        self.source, self.size = given.source.tolist(), given.bytes.tolist()
        self.control_s, self.fixed_s = given.control_s.tolist(), given.fixed_s.tolist()
        self.dram_s, self.multicast_s = given.dram_s.tolist(), given.multicast_s
        self.piped_s, self.piped_with = given.piped_s, given.piped_with
        self.local_s, self.local_piped_s, self.local_with = given.local_s, given.local_piped_s, given.local_with
        self.memory_first, self.hosts_send = given.memory_first.tolist(), given.hosts_send.tolist()
        self.switch_whole = given.switch_whole.tolist()
        self.stale_s, self.detect_s = given.stale_s, given.detect_s
        self.ssds = [
            SharedSSD(*rates, clock, instants.reads, self._was_read)
            for rates in zip(given.ssd_bytes_per_s.tolist(), given.ssd_each_bytes_per_s.tolist(), strict=True)
        ]
        self.chains = Chains(given, self, links) if links else None
        self.begun = 0
        self.operations: dict[int, Operation] = {}  # those that run, by number
        self.coming: dict[Row, Load] = {}

    def begin_resident(self, group: int, rows: list[Row]) -> None:
        """Rows of a group have just taken the places of others, with their weights: they come up at once."""
        operation = self._operation(group, [])
        for load in [self.load(row, RESIDENT_TIER, operation, 0) for row in rows]:
            self._complete(load)

    def begin(self, group: int, rows: list[Row], cached: list[bool]) -> None:
        """Rows of a group have just taken their places; those whose weights take no time come up at once.

        Parameters:
            group: number.
            rows: in the order chosen.
            cached: whether the host of each had the weights in its memory before.
        """
        for load, ready_s in self._start(group, rows, cached):
            if ready_s <= self.clock.now:
                self._complete(load)
            else:
                self.expect(load, ready_s)

    def lose(self, row: Row) -> None:
        """A row failed: its own load is lost, and loads that have no other source left begin again."""
        if row in self.coming:
            load = self.coming.pop(row)
            self.ssds[row.host].stop(load)
            self._break_pipeline(load)
            self._leave_operation(load)
        for operation in list(self.operations.values()):
            if isinstance(operation, Chain):
                self.chains.lose(operation, row)
            elif operation.lose_source(row):
                self.begin_again(operation)

    def outdate(self, model: int) -> None:
        """There is a newer version of a model: what is on its way begins again."""
        for operation in list(self.operations.values()):
            if operation.group % len(self.size) == model:
                for load in operation.loads:
                    self.ssds[load.row.host].stop(load)
                self.begin_again(operation)

    def _start(self, group: int, rows: list[Row], cached: list[bool]) -> list[tuple[Load, float]]:
        """Loads of rows, with the time at which each is ready; reads from SSD are on their way and left out."""
        if self.source[group] not in (MULTICAST, CHAINS):
            return self._start_tiers(group, rows, cached)
        found, model, hits = [], rows[0].model, dict(zip(rows, cached, strict=True))
        by_chains = self.source[group] == CHAINS
        if self.memory_first[group] and any(cached):
            warm = [row for row in rows if hits[row]]
            rows, cached = [row for row in rows if not hits[row]], [False] * (len(rows) - len(warm))
            if by_chains:
                found += self._start_tiers(group, warm, [True] * len(warm))
            else:
                found += self._start_batches(group, warm, [], 0)
        if by_chains:
            near, rows = self.chains.start(group, rows)
            return found + near + (self._start_tiers(group, rows, [hits[row] for row in rows]) if rows else [])
        sources = self.fleet.readable(model)
        senders = len(sources)
        if not sources and self.hosts_send[group]:
            senders = sum(cache.has(model) for cache in self.fleet.caches)
        if senders:
            return found + self._start_batches(group, rows, sources, senders)
        return found + (self._start_tiers(group, rows, cached) if rows else [])

    def _start_batches(self, group: int, rows: list[Row], sources: list[Row], senders: int) -> list[tuple[Load, float]]:
        """Operations of as many rows as one has room for."""
        most = self.multicast_s.shape[2]
        batches = [rows[first : first + most] for first in range(0, len(rows), most)]
        return [pair for batch in batches for pair in self._start_together(group, batch, sources, senders)]

    def _start_together(
        self, group: int, rows: list[Row], sources: list[Row], senders: int
    ) -> list[tuple[Load, float]]:
        """One operation: a multicast from `senders`, or without any the loads of rows from their hosts' memories."""
        operation, now_s = self._operation(group, sources), self.clock.now + self.control_s[group]
        if senders:
            tier, tables = MULTICAST_TIER, (self.multicast_s, self.piped_s, self.piped_with)
            entry = group, min(senders, self.multicast_s.shape[1]) - 1, len(rows) - 1, slice(len(rows))
        else:
            tier, tables = DRAM_TIER, (self.local_s, self.local_piped_s, self.local_with)
            entry = group, len(rows) - 1, slice(len(rows))
        alone_s, piped_s, pipelines = (table[entry].tolist() for table in tables)
        if self.switch_whole[group]:
            alone_s = [max(alone_s)] * len(rows)
        loads = [self.load(row, tier, operation, senders) for row in rows]
        for k, load in enumerate(loads):
            if piped_s[k] < alone_s[k]:
                load.pipeline = pipelines[k]
                self._expect_pipeline(load, now_s + piped_s[k])
        return [(load, now_s + alone_s[k]) for k, load in enumerate(loads)]

    def _start_tiers(self, group: int, rows: list[Row], cached: list[bool]) -> list[tuple[Load, float]]:
        operation, loads = self._operation(group, []), []
        for row, hit in zip(rows, cached, strict=True):
            tier, load_s = self._tier(row, hit)
            load = self.load(row, tier, operation, 0)
            if tier == SSD_TIER:
                self._read(load)
            elif tier == IDEAL_TIER:
                loads.append((load, self.clock.now))
            else:
                loads.append((load, self.clock.now + self.control_s[group] + load_s))
        return loads

    def _read(self, load: Load) -> None:
        """Read a load from SSD, or look for it in memory first if it is not known yet that it has left."""
        ssd, size = self.ssds[load.row.host], self.size[load.row.model]

        def missed(_) -> None:
            if self.coming.get(load.row) is load:
                ssd.start(load, size)

        if self.fleet.caches[load.row.host].left_within(load.row.model, self.stale_s):
            seen = self.clock.at(self.clock.now + self.detect_s, self.instants.ready + load.row.index)
            seen.callbacks.append(missed)
        else:
            ssd.start(load, size)

    def _tier(self, row: Row, cached: bool) -> tuple[int, float]:
        """Where the weights of a row come from if from no other row, and how long that takes where it is known."""
        source = self.source[row.group]
        if source == IDEAL:
            return IDEAL_TIER, 0.0
        if source == FIXED:
            return FIXED_TIER, self.fixed_s[row.group]
        if cached or source == ALL_CACHED:
            return DRAM_TIER, self.dram_s[row.index]
        return SSD_TIER, 0.0

    def _operation(self, group: int, sources: list[Row]) -> Operation:
        return self.add(Operation(self.begun, group, sources))

    def add(self, operation: Operation) -> Operation:
        """An operation begins, of the number `begun`."""
        self.operations[self.begun] = operation
        self.begun += 1
        return operation

    def load(self, row: Row, tier: int, operation: Operation, senders: int) -> Load:
        self.fleet.renew(row)
        load = self.coming[row] = Load(row, self.clock.now, tier, senders, operation.number)
        operation.loads.append(load)
        self.log.loads.append(load)
        return load

    def expect(self, load: Load, ready_s: float) -> None:
        """A load is ready at some time, unless it is lost before."""

        def ready(_) -> None:
            if self.coming.get(load.row) is load:
                self._complete(load)

        self.clock.at(ready_s, self.instants.ready + load.row.index).callbacks.append(ready)

    def _expect_pipeline(self, load: Load, forms_s: float) -> None:
        def form(_) -> None:
            if self.coming.get(load.row) is load and load.pipeline not in self.operations[load.operation].broken:
                load.piped_s = self.clock.now
                self.fleet.join_pipeline(load.row, load)

        self.clock.at(forms_s, self.instants.forms + load.row.index).callbacks.append(form)

    def _break_pipeline(self, lost: Load) -> None:
        """A pipeline loses a member: the others wait for their weights again."""
        if lost.pipeline is not None:
            operation = self.operations[lost.operation]
            operation.broken.add(lost.pipeline)
            for row in operation.members(lost.pipeline):
                self.fleet.leave_pipeline(row)

    def _was_read(self, load: Load) -> None:
        """The SSD has read all of a load: the host caches it, and the engine starts."""
        self.fleet.caches[load.row.host].put(load.row.model)
        self.expect(load, self.clock.now + self.control_s[load.row.group])

    def _complete(self, load: Load) -> None:
        row = load.row
        load.end_s = self.clock.now
        if load.tier == DRAM_TIER:
            self.fleet.caches[row.host].use(row.model)
        del self.coming[row]
        self._leave_operation(load)
        self.fleet.come_up(row, load)

    def _leave_operation(self, load: Load) -> None:
        """A load is complete or lost; the last one of an operation releases its sources."""
        operation = self.operations[load.operation]
        operation.loads.remove(load)
        if not operation.loads:
            self.end(operation)

    def end(self, operation: Operation) -> None:
        """An operation is over: nothing is sent any more, and its sources are read no more."""
        del self.operations[operation.number]
        for flow in operation.flows:
            self.chains.links.cancel(flow)
        for row in operation.release():
            self.fleet.released(row)

    def begin_again(self, operation: Operation) -> None:
        """The loads of an operation without a source are lost, and their rows start anew from what there is now."""
        for row in operation.members():
            self.fleet.leave_pipeline(row)
        self.end(operation)
        self.start_anew([load.row for load in operation.loads])

    def start_anew(self, rows: list[Row]) -> None:
        """Rows of a group that lost their loads start from what there is now."""
        cached = [self.fleet.caches[row.host].has(row.model) for row in rows]
        for load, ready_s in self._start(rows[0].group, rows, cached):
            self.expect(load, ready_s)
