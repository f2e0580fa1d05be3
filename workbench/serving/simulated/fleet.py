"""All rows of a cluster that scales: who holds which place, and what goes with every change of state."""

from collections.abc import Callable
from math import isfinite

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.scaled import DEAD, DRAINING, EMPTY, PIPED, STARTING, UP, WARM
from workbench.serving.simulated.fleet_log import FleetLog
from workbench.serving.simulated.host_cache import HostCache
from workbench.serving.simulated.instants import Instants
from workbench.serving.simulated.load import Load
from workbench.serving.simulated.ranks import join_first
from workbench.serving.simulated.router import Router
from workbench.serving.simulated.row import Row


class Fleet:
    """Rows by place, with at most one of a place not empty."""

    def __init__(
        self, rows: list[Row], keep_s: list[float], router: Router, clock: Clock, instants: Instants, log: FleetLog
    ):  # fmt: skip
        """Rows that are up are alive at once; a warm row of each group lasts `keep_s`."""
        self.rows, self.keep_s = rows, keep_s
        self.router, self.clock, self.instants, self.log = router, clock, instants, log
        self.caches: list[HostCache] = []  # by host; they ask this fleet what it holds
        self.resident: Callable[[Row], None] | None = None  # told of a row whose weights are there: a role has changed
        self.stayed: dict[Row, list] = {}  # those whose KV stayed on the place of a row that is about to come up
        self.places: dict[int, list[Row]] = {}
        for row in rows:
            self.places.setdefault(row.place, []).append(row)
            row.instance.emptied = lambda row=row: self._emptied(row)
            if row.state == UP:
                row.instance.recover(router)

    def of(self, group: int, *states: int) -> list[Row]:
        """The rows of a group that are in one of some states, by index."""
        return [row for row in self.rows if row.group == group and row.state in states]

    def readable(self, model: int) -> list[Row]:
        """The rows, in whatever role, that have all weights of a model, by index."""
        groups = {row.group for row in self.rows if row.model == model}
        rows = [row for group in groups for row in self.of(group, UP, DRAINING, WARM)]
        return sorted(filter(self.is_new, rows), key=lambda row: row.index)

    def free(self, place: int) -> bool:
        """Whether all rows of a place are empty."""
        return all(row.state == EMPTY for row in self.places[place])

    def holds(self, host: int, model: int) -> bool:
        """Whether some row of a host has the newest version of a model, or is about to."""
        return any(row.host == host and row.occupied and self.is_new(row) for row in self.rows if row.model == model)

    def is_new(self, row: Row) -> bool:
        """Whether a row has, or waits for, the newest version of its weights."""
        return row.version == self.router.versions[row.model]

    def at_rest(self) -> bool:
        """Whether nothing here will happen of itself: no load, no step, no end of a warm row's time."""
        return not any(
            row.state in (STARTING, PIPED)
            or not row.instance.at_rest
            or (row.state == WARM and isfinite(row.warm_until_s))
            for row in self.rows
        )

    def renew(self, row: Row) -> None:
        """A row waits for the newest version of its weights."""
        row.version = row.instance.version = self.router.versions[row.model]

    def take(self, row: Row) -> None:
        """The place of an empty row is its own from now on; its weights are to come."""
        self._become(row, STARTING)

    def come_up(self, row: Row, load: Load | None = None) -> None:
        """A row takes requests from now on: its `load` is complete, or it drained or was warm."""
        if row.state == PIPED:
            row.instance.switch(self.router)
        elif load:
            row.instance.load = load
            row.instance.recover(self.router)
        self._become(row, UP)
        for request in reversed(row.instance.take_over(self.stayed.pop(row, []))):
            request.forget()
            request.moves += 1
            join_first(self.router.lines[row.model], request)
        self.router.hand_out(row.model)
        self.router.hand_on(row.model)

    def join_pipeline(self, row: Row, load: Load) -> None:
        """A row whose `load` is still coming takes requests as a member of a pipeline."""
        row.instance.load = load
        row.instance.recover(self.router, row.piped_form)
        self._become(row, PIPED)
        self.router.hand_out(row.model)

    def leave_pipeline(self, row: Row) -> None:
        """A row only waits for its weights again; requests there go back to the router."""
        row.instance.load = None
        self._become(row, STARTING)
        self.router.meet_again(row.instance.fail(), row.model)

    def drain(self, row: Row) -> None:
        """A row takes no more requests."""
        if row.instance.in_use:
            self._become(row, DRAINING)
        else:
            self._cool(row)

    def _emptied(self, row: Row) -> None:
        """The last request of a row that drains is gone; it is warm when all steps of this instant have ended, if it
        still drains then."""

        def cool(_) -> None:
            if row.state != DRAINING or not row.instance.is_done:
                return
            if row.changes_role and not row.uses:
                new = self.other(row)
                self.change_role(row, new)
                self.resident(new)
            elif row.instance.in_use:
                row.changes_role = False
                row.instance.keep_no_kv()
                self.router.hand_on(row.model)
            else:
                self._cool(row)
                if not self.is_new(row):
                    self.router.hand_on(row.model)

        self.clock.at(self.clock.now, self.instants.drained + row.index).callbacks.append(cool)

    def _cool(self, row: Row) -> None:
        """A row has no work and takes none: it is warm, and empty when it was that for long enough."""
        row.instance.finishing = False
        self._become(row, WARM)
        row.warm_until_s = self.clock.now + (self.keep_s[row.group] if self.is_new(row) else 0.0)
        row.warm_since_s = self.clock.now
        if row.warm_until_s > self.clock.now:
            self._expect_end(row, row.warm_until_s)
        elif not row.uses:
            self.leave(row)

    def released(self, row: Row) -> None:
        """A row is no longer read: if its time as a warm row ran out meanwhile, it ends now."""
        if row.state == WARM and row.warm_until_s <= self.clock.now:
            self._expect_end(row, self.clock.now)

    def _expect_end(self, row: Row, end_s: float) -> None:
        since_s = row.warm_since_s

        def expire(_) -> None:
            if row.state == WARM and row.warm_since_s == since_s and not row.uses:
                self.leave(row)

        if isfinite(end_s):
            self.clock.at(end_s, self.instants.expires + row.index).callbacks.append(expire)

    def leave(self, row: Row) -> None:
        """A warm row gives its place back; the host saw its weights last at this moment."""
        cache = self.caches[row.host]
        if self.is_new(row):
            cache.use(row.model)
        row.instance.load = None
        row.instance.prefixes.clear()
        self._become(row, EMPTY)
        cache.trim()

    def outdate(self, model: int) -> None:
        """There is a newer version of a model: rows with older ones finish what they have and leave."""
        for cache in self.caches:
            if cache.has(model):
                cache.drop(model)
        self.router.versions[model] += 1
        rows = [row for row in self.rows if row.model == model]
        for row in rows:
            row.instance.keep_no_kv()
            row.instance.finishing, row.changes_role = row.state in (UP, DRAINING), False
        for row in rows:
            if row.state == UP:
                self.drain(row)
        for row in rows:
            if row.state == WARM:
                row.warm_until_s = self.clock.now
                if not row.uses:
                    self.leave(row)

    def other(self, row: Row) -> Row | None:
        """The row of a place that has the model in the other role; None if there is none."""
        mine = (one for one in self.places[row.place] if one.model == row.model and one.group != row.group)
        return next(mine, None)

    def give_up_role(self, row: Row, requeue: bool, stays: bool) -> None:
        """A row that computes prompts drains, and decodes when it has nothing left.

        Parameters:
            row: up, or draining.
            requeue: whether what waits in its queue goes back to the router.
            stays: whether KV that is not on its way from there stays, and the queue goes back too.
        """
        if row.state == UP:
            self._become(row, DRAINING)
        row.changes_role = True
        if stays:
            row.instance.keep_kv()
        if requeue or stays:  # that KV may take the blocks of a queue
            waiting = list(row.instance.queue)
            row.instance.queue.clear()
            self.router.meet_again(waiting, row.model)
        if row.instance.is_done:
            self._emptied(row)

    def change_role(self, old: Row, new: Row) -> None:
        """A row gives its place to the other one of its model there, with its weights and the KV that stayed."""
        self.stayed[new] = old.instance.leave_kv()
        old.instance.load = None
        old.instance.prefixes.clear()
        self._become(old, EMPTY)
        self._become(new, STARTING)

    def fail(self, place: int) -> Row | None:
        """All rows of a place are dead, and requests there go back to the router; returns the row that held it."""
        rows = self.places[place]
        holder = next((row for row in rows if row.occupied), None)
        for row in rows:
            self._become(row, DEAD)
        if holder:
            self.caches[holder.host].trim()
            holder.instance.load, holder.instance.finishing = None, False
            if self.router.migrations:
                self.router.migrations.stop(holder.instance)
            self.router.meet_again(holder.instance.fail(), holder.model)
        return holder

    def recover(self, place: int) -> None:
        """A place is there again, and empty."""
        for row in self.places[place]:
            self._become(row, EMPTY)

    def _become(self, row: Row, state: int) -> None:
        row.become(state)
        row.instance.keeps_kv = False
        if state == STARTING:
            self.renew(row)
        self.log.changed(row.index, state)
