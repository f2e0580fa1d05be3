"""The autoscaler: at every tick it looks at each group, decides how many rows there shall be, and starts or drains."""

from collections import deque
from collections.abc import Callable

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.scaled import DRAINING, EMPTY, PIPED, STARTING, UP, WARM, Scaling
from workbench.serving.policy.scalers import ROLES
from workbench.serving.policy.scaling import decide, decide_role
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
        self.groups, self.models = range(len(given.kind)), len(given.bytes)
        self.lines = [*router.lines[: self.models], *router.decode_lines[: self.models]]
        self.kind, self.par = given.kind.tolist(), given.par
        self.bounds = list(zip(given.min_rows.tolist(), given.max_rows.tolist(), strict=True))
        self.down_step = given.down_step.tolist()
        self.mutate, self.requeue, self.stays = given.mutate.tolist(), given.requeue.tolist(), given.stays.tolist()
        up_ticks, down_ticks = given.up_ticks.tolist(), given.down_ticks.tolist()
        self.windows = [Windows(*ticks) for ticks in zip(up_ticks, down_ticks, strict=True)]
        delay = int(given.scrape_ticks)
        self.seen = deque([[Signals()] * len(self.groups)] * delay, maxlen=delay + 1)  # the oldest is what is acted on
        self.counted = [0] * len(self.groups)  # arrivals up to the last tick
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
        looks = zip(self.groups, self.lines, self.counted, strict=False)
        self.seen.append([signals(group, line, self.fleet, line.met - before) for group, line, before in looks])
        self.counted = [line.met for line in self.lines]
        for group in self.groups:
            self._settle(group, self.seen[0])

    def _settle(self, group: int, seen: list[Signals]) -> None:
        """Decide for one group, and do it."""
        starting = len(self.fleet.of(group, STARTING, PIPED)) + self._changing_to(group)
        n = starting + len(self.fleet.of(group, UP))
        kind, par = self.kind[group], self.par[group]
        if kind == ROLES:
            wanted = self._wanted_of_role(group, seen, n)
        else:
            wanted = int(decide(kind, par, *seen[group][:5], n, starting, self.tick_s))
        least, most = self.bounds[group]
        want = self.windows[group].settle(max(least, min(wanted, most)), n)
        self.log.decided(group, want, n)
        if want > n:
            self._grow(group, want - n)
        elif want < n:
            self._shrink(group, min(n - want, self.down_step[group]))

    def _wanted_of_role(self, group: int, seen: list[Signals], n: int) -> int:
        """By the load of both roles of the group's model."""
        decodes = group >= self.models
        first, second = group % self.models, group % self.models + self.models
        decoders = len(self.fleet.of(second, STARTING, UP)) + self._changing_to(second)
        prompts, blocks = seen[first], seen[first].blocks + seen[second].blocks
        return int(decide_role(decodes, self.par[group], prompts.prompt_tokens, prompts.stored, blocks, n, decoders))

    def _shrink(self, group: int, count: int) -> None:
        """Rows with the fewest requests drain, of equals the last one; not the last one to which rows that are to
        follow it send their KV."""
        rows = self.fleet.of(group, UP)
        rows.sort(key=lambda row: (row.instance.outstanding, -row.index))
        if self._changing_to(group):
            rows = rows[:-1]
        for row in rows[:count]:
            self.fleet.drain(row)

    def _grow(self, group: int, count: int) -> None:
        """Rows that drain or are warm come back first, then those of the other role; the rest starts where there is
        room."""
        draining = self._draining(group)
        draining.sort(key=lambda row: (row.instance.blocks.in_use, row.index))
        revived = [*draining, *self.fleet.of(group, WARM)][:count]
        for row in revived:
            self.fleet.come_up(row)
        count -= len(revived)
        count -= self._change_roles(group, count)
        count -= self._take_busy(group, count)
        self._start(group, count)

    def _start(self, group: int, count: int) -> None:
        """So many rows, or as many as there is room for, whose weights have to come."""
        if not count:
            return
        cached = [cache.has(group % self.models) for cache in self.fleet.caches]
        rows = self._take_free(group, count, cached)
        rows += self._take_from_others(group, count - len(rows))
        if rows:
            self.weights.begin(group, rows, [cached[row.host] for row in rows])

    def _change_roles(self, group: int, count: int) -> int:
        """Rows of the model's other role that are warm give their places; how many."""
        pairs = self._idle(group, lambda row: row.model == group % self.models)[:count]
        for old, new in pairs:
            self.fleet.change_role(old, new)
        if pairs:
            self.weights.begin_resident(group, [new for _, new in pairs])
        return len(pairs)

    def _take_busy(self, group: int, count: int) -> int:
        """Rows that compute prompts will decode when they have done what they have; others start in place of those that
        would have gone on. How many."""
        if group < self.models or not self.mutate[group]:
            return 0
        first, taken, replaced = group - self.models, 0, 0
        while taken < count and self.fleet.of(group, UP) and (row := self._one_to_take(first, self.mutate[group])):
            if row.state == UP:
                if replaced == self._room(first):
                    break
                replaced += 1
            self.fleet.give_up_role(row, bool(self.requeue[group]), bool(self.stays[group]))
            taken += 1
        self._start(first, replaced)
        return taken

    def _one_to_take(self, first: int, mutate: int) -> Row | None:
        """Of rows that drain the one with the fewest blocks in use, else of those that are up, if another one is."""
        up = self.fleet.of(first, UP)
        for rows in (self._draining(first), up if mutate == 2 and len(up) > 1 else []):
            able = [row for row in rows if not row.uses and self.fleet.other(row)]
            if able:
                return min(able, key=lambda row: (row.instance.blocks.in_use, row.index))
        return None

    def _draining(self, group: int) -> list[Row]:
        """Rows that drain, but not to change their role, nor since there are newer weights."""
        rows = self.fleet.of(group, DRAINING)
        return [row for row in rows if self.fleet.is_new(row) and not row.changes_role]

    def _changing_to(self, group: int) -> int:
        """Rows that drain to take this role; none that wait for one to send KV to, where there is none."""
        there = group >= self.models and self.fleet.of(group, UP, STARTING)
        others = self.fleet.of(group - self.models, DRAINING) if there else []
        return sum(row.changes_role for row in others)

    def _room(self, group: int) -> int:
        """Free places that a group has a row for."""
        return sum(self.fleet.free(row.place) for row in self.fleet.of(group, EMPTY))

    def _take_free(self, group: int, count: int, cached: list[bool]) -> list[Row]:
        """Free places, those first whose host has the weights in its memory."""
        rows = [row for row in self.fleet.of(group, EMPTY) if self.fleet.free(row.place)]
        rows = sorted(rows, key=lambda row: (not cached[row.host], row.index))[:count]
        for row in rows:
            self.fleet.take(row)
        return rows

    def _take_from_others(self, group: int, count: int) -> list[Row]:
        """Places of other models' warm rows."""
        pairs = self._idle(group, lambda row: row.model != group % self.models)[:count]
        for old, new in pairs:
            self.fleet.leave(old)
            self.fleet.take(new)
        return [new for _, new in pairs]

    def _idle(self, group: int, wanted: Callable[[Row], bool]) -> list[tuple[Row, Row]]:
        """Warm rows that nothing reads, the one first that is warm for the longest time, and the group's own there."""
        own = {row.place: row for row in self.fleet.of(group, EMPTY)}
        idle = [row for row in self.fleet.rows if row.state == WARM and not row.uses and row.place in own]
        idle.sort(key=lambda row: (row.warm_since_s, row.index))
        return [(row, own[row.place]) for row in idle if wanted(row)]
