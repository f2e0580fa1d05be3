"""Two instances that share batches while one of them still receives its layers, as SimPy processes."""

import numpy as np

from workbench.queueing.simulated.clock import Clock
from workbench.scaling.model.live_pair import LivePair, Shared, lay_out
from workbench.scaling.policy.live_pair import layers_now, next_on_source, next_on_target

_ARRIVES, _LOADED, _TARGET_ENDS, _SOURCE_ENDS, _DECIDES = range(2, 7)  # after SimPy's own priorities 0 and 1


class _Pair:
    """The state that both instances look at, and the moments at which they look."""

    def __init__(self, asked: LivePair):
        self.asked, self.clock = asked, Clock()
        self.ready_s, self.arrival_s, self.layer_s, self.hand_s, self.most = asked.arrays
        count = len(self.arrival_s)
        self.moved, self.taken = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        self.finish_s = np.full(count, np.inf)
        self.arrived = self.ready = self.goal = 0
        self.busy = self.current = self.working = -1
        self.called = False
        self.slots: list[tuple[float, float, int, int]] = []

    def run(self) -> None:
        self.clock.process(self._come(self.arrival_s, _ARRIVES, "arrived"))
        self.clock.process(self._come(self.ready_s[np.isfinite(self.ready_s)], _LOADED, "ready"))
        self.clock.run()

    def _come(self, times_s: np.ndarray, priority: int, counter: str):
        for time_s in times_s.tolist():
            yield self.clock.at(time_s, priority)
            setattr(self, counter, getattr(self, counter) + 1)
            self._call()

    def _call(self) -> None:
        """Both look once, when everything that happens at this instant has happened."""
        if not self.called:
            self.called = True
            self.clock.at(self.clock.now, _DECIDES).callbacks.append(self._decide)

    def _decide(self, _) -> None:
        self.called = False
        if self.working < 0:
            self._source_decides()
        if self.busy < 0:
            self._target_decides()

    def _target_choice(self) -> int:
        return int(
            next_on_target(
                self.asked.number, self.moved, self.most, self.taken, self.arrived, self.ready, self.current, self.goal
            )
        )

    def _source_decides(self) -> None:
        held = self.current if self.current in (self.busy, self._target_choice()) else -1
        batch = int(
            next_on_source(
                self.asked.number,
                self.moved,
                self.most,
                self.taken,
                self.arrived,
                self.busy,
                held,
                self.asked.untouched,
            )
        )
        if batch >= 0:
            self.taken[batch], self.working = True, batch
            self.clock.process(self._work(batch))

    def _work(self, batch: int):
        """The source waits for the activation, if there is one, and runs all that is left of a batch."""
        wait_s = self.hand_s[batch] if self.moved[batch] else 0.0
        left = len(self.ready_s) - int(self.moved[batch])
        start_s, end_s = self.clock.now, self.clock.now + (wait_s + self.layer_s[batch] * left)
        self.slots.append((start_s, float(end_s), batch, 0))
        yield self.clock.at(float(end_s), _SOURCE_ENDS)
        self.finish_s[batch], self.working = self.clock.now, -1
        self._call()

    def _target_decides(self) -> None:
        batch = self._target_choice()
        if batch >= 0:
            if batch != self.current:
                self.goal = layers_now(self.most[batch], self.ready)
            self.busy = self.current = batch
            self.clock.process(self._execute(batch))

    def _execute(self, batch: int):
        """The target executes one layer of a batch."""
        start_s, end_s = self.clock.now, float(self.clock.now + self.layer_s[batch])
        self.slots.append((start_s, end_s, batch, 1))
        yield self.clock.at(end_s, _TARGET_ENDS)
        self.moved[batch] += 1
        if self.moved[batch] == len(self.ready_s):
            self.taken[batch], self.finish_s[batch] = True, self.clock.now
        self.busy = -1
        self._call()


def simulate(asked: LivePair) -> Shared:
    """When every batch is done, and which slots it took, by simulation; see `workbench.scaling.model.share_batches`."""
    pair = _Pair(asked)
    pair.run()
    return lay_out(pair.finish_s, pair.moved, np.array(pair.slots).reshape(-1, 4))
