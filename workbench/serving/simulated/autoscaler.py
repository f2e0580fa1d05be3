"""The autoscaler: at every tick it looks at each model, decides how many rows there shall be, and starts or drains."""

from collections import deque
from collections.abc import Callable

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.scaled import DRAINING, EMPTY, PIPED, STARTING, UP, WARM, Scaling
from workbench.serving.policy.scaling import decide
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.fleet_log import FleetLog
from workbench.serving.simulated.router import Router
from workbench.serving.simulated.row import Row
from workbench.serving.simulated.signals import Signals, signals
from workbench.serving.simulated.weights import Weights
from workbench.serving.simulated.windows import Windows


class Autoscaler:
    """A SimPy process of ticks, as long as any request is on its way or to come and anything may still change."""

    def __init__(
        self, given: Scaling, fleet: Fleet, weights: Weights, router: Router, log: FleetLog, clock: Clock, priority: int
    ):  # fmt: skip
        self.fleet, self.weights, self.router, self.log, self.clock = fleet, weights, router, log, clock
        self.priority, self.tick_s = priority, float(given.tick_s)
        self.models = range(len(given.kind))
        self.kind, self.par = given.kind.tolist(), given.par
        self.bounds = list(zip(given.min_rows.tolist(), given.max_rows.tolist(), strict=True))
        self.down_step = given.down_step.tolist()
        up_ticks, down_ticks = given.up_ticks.tolist(), given.down_ticks.tolist()
        self.windows = [Windows(*ticks) for ticks in zip(up_ticks, down_ticks, strict=True)]
        delay = int(given.scrape_ticks)
        self.seen = deque([[Signals()] * len(self.models)] * delay, maxlen=delay + 1)  # the oldest is what is acted on
        self.counted = [0] * len(self.models)  # arrivals up to the last tick
        self.patience = delay + max(up_ticks) + max(down_ticks) + 1

    def live(self, all_done: Callable[[], bool], nothing_to_come: Callable[[], bool]):
        """The process.

        Parameters:
            all_done: whether every request is done or rejected.
            nothing_to_come: whether neither an arrival, nor a failure, nor a recovery is still to come.
        """
        ticks = quiet = 0
        while quiet < self.patience:
            ticks += 1
            yield self.clock.at(ticks * self.tick_s, self.priority)
            if all_done():
                return
            changes = len(self.log.states)
            self._tick()
            still = len(self.log.states) == changes and nothing_to_come() and self.fleet.at_rest()
            quiet = quiet + 1 if still else 0

    def _tick(self) -> None:
        met = self.router.met
        self.seen.append(
            [signals(model, self.router, self.fleet, met[model] - self.counted[model]) for model in self.models]
        )
        self.counted = list(met)
        for model, seen in enumerate(self.seen[0]):
            self._settle(model, seen)

    def _settle(self, model: int, seen: Signals) -> None:
        """Decide for one model, and do it."""
        starting = len(self.fleet.of(model, STARTING, PIPED))
        n = starting + len(self.fleet.of(model, UP))
        wanted = int(decide(self.kind[model], self.par[model], *seen, n, starting, self.tick_s))
        least, most = self.bounds[model]
        want = self.windows[model].settle(max(least, min(wanted, most)), n)
        self.log.decided(model, want, n)
        if want > n:
            self._grow(model, want - n)
        elif want < n:
            self._shrink(model, min(n - want, self.down_step[model]))

    def _shrink(self, model: int, count: int) -> None:
        """Rows with the fewest requests drain, of equals the last one."""
        rows = self.fleet.of(model, UP)
        rows.sort(key=lambda row: (row.instance.outstanding, -row.index))
        for row in rows[:count]:
            self.fleet.drain(row)

    def _grow(self, model: int, count: int) -> None:
        """Rows that drain or are warm come back first; the rest starts where there is room."""
        draining = self.fleet.of(model, DRAINING)
        draining.sort(key=lambda row: (row.instance.blocks.in_use, row.index))
        revived = [*draining, *self.fleet.of(model, WARM)][:count]
        for row in revived:
            self.fleet.come_up(row)
        count -= len(revived)
        if not count:
            return
        cached = [cache.has(model) for cache in self.fleet.caches]
        rows = self._take_free(model, count, cached)
        rows += self._take_from_others(model, count - len(rows))
        if rows:
            self.weights.begin(model, rows, [cached[row.host] for row in rows])

    def _take_free(self, model: int, count: int, cached: list[bool]) -> list[Row]:
        """Free places, those first whose host has the weights in its memory."""
        rows = [row for row in self.fleet.of(model, EMPTY) if self.fleet.free(row.place)]
        rows = sorted(rows, key=lambda row: (not cached[row.host], row.index))[:count]
        for row in rows:
            self.fleet.take(row)
        return rows

    def _take_from_others(self, model: int, count: int) -> list[Row]:
        """Places of other models' warm rows that nothing reads, the one first that is warm for the longest time."""
        own = {row.place: row for row in self.fleet.of(model, EMPTY)}
        idle = [row for row in self.fleet.rows if row.state == WARM and not row.uses and row.place in own]
        idle.sort(key=lambda row: (row.warm_since_s, row.index))
        for row in idle[:count]:
            self.fleet.leave(row)
            self.fleet.take(own[row.place])
        return [own[row.place] for row in idle[:count]]
