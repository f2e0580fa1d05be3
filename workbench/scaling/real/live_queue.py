"""The batches that an old instance shares with a new one: who takes which is decided as formula and simulation do."""

import numpy as np

from workbench.scaling.model.live_pair import LivePair
from workbench.scaling.policy.live_pair import ZIGZAG, layers_now, next_on_source, next_on_target


class LiveQueue:
    """The state that `workbench.scaling.policy.live_pair` decides on, for one pair.

    Parameters:
        asked: the pair.
        old: node of the old instance, None for none.
        new: node of the new one.

    Attributes:
        moved, taken, arrived, ready, busy, current, goal: as in `workbench.scaling.policy.live_pair`.
        working: the batch of the old instance, -1 for none.
        turn: how often each batch was begun anew.
        done: which are.
        by: the node that ran the rest of each batch, -1 before.
    """

    def __init__(self, asked: LivePair, old: int | None, new: int):
        count = len(asked.arrival_s)
        self.asked, self.old, self.new = asked, old, new
        self._number, self._untouched = asked.number, asked.untouched
        self.most = asked.arrays[4]
        self.moved, self.turn = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.taken, self.done = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self.by = np.full(count, -1)
        self.arrived = self.ready = self.goal = 0
        self.busy = self.current = self.working = -1
        self.helping = True
        self.for_new(), self.for_old(), layers_now(self.most[0], 0)  # compiled, or fetched, before any clock runs

    def for_new(self) -> int:
        """The batch whose next layer the new instance runs now, -1 for none."""
        if not self.helping or self.busy >= 0:
            return -1
        return self._on_new()

    def for_old(self) -> int:
        """The batch that the old instance takes now with all that is left of it, -1 for none."""
        if self.old is None or self.working >= 0:
            return -1
        held = self.current if self.current in (self.busy, self._on_new()) else -1
        return int(
            next_on_source(
                self._number, self.moved, self.most, self.taken, self.arrived, self.busy, held, self._untouched
            )
        )

    def for_whole(self) -> int:
        """The earliest batch that nobody has begun, for an instance that runs batches whole; -1 for none."""
        free = ~self.taken & (self.moved == 0)
        free[self.arrived :] = False
        if self.busy >= 0:
            free[self.busy] = False
        return int(np.argmax(free)) if free.any() else -1

    def begin_on_new(self, batch: int) -> None:
        """The new instance runs the next layer of a batch."""
        if batch != self.current:
            self.goal = int(layers_now(self.most[batch], self.ready))
        self.busy = self.current = batch

    def without_new(self, lost: bool) -> list[int]:
        """The new instance helps no more; the batches that are to be begun anew, because it took their layers along.

        Parameters:
            lost: whether what it computed is gone too; else it hands over what it has begun.
        """
        self.helping, self.ready = False, 0
        self._number, self._untouched = ZIGZAG, True
        if not lost:
            return []
        self.busy = -1
        return self._anew(self.moved > 0)

    def without_old(self) -> list[int]:
        """The old instance is gone: the new one does everything, as its layers come."""
        gone = self.by == self.old
        self.old, self.working = None, -1
        self._number, self.most = ZIGZAG, np.full(len(self.moved), self.asked.layers)
        return self._anew(gone)

    def without_whole(self, node: int) -> list[int]:
        """An instance that ran batches whole is gone."""
        return self._anew(self.by == node)

    def _anew(self, which: np.ndarray) -> list[int]:
        batches = np.flatnonzero(which).tolist()
        for batch in batches:
            self.moved[batch], self.taken[batch], self.done[batch], self.by[batch] = 0, False, False, -1
            self.turn[batch] += 1
        return batches

    def _on_new(self) -> int:
        return int(
            next_on_target(
                self._number, self.moved, self.most, self.taken, self.arrived, self.ready, self.current, self.goal
            )
        )
