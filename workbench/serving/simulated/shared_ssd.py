"""The SSDs of one host, shared equally by the loads that read from them."""

from collections.abc import Callable
from math import inf, nextafter

from workbench.queueing.simulated.clock import Clock
from workbench.serving.simulated.load import Load


class SharedSSD:
    """Bytes left of each running read; whenever one starts or ends, all go on at another speed."""

    def __init__(
        self, bytes_per_s: float, each_bytes_per_s: float, clock: Clock, priority: int, ended: Callable[[Load], None]
    ):  # fmt: skip
        """Nothing is read yet.

        Parameters:
            bytes_per_s: of all SSDs together.
            each_bytes_per_s: that one load gets at most.
            clock: on which the ends are put.
            priority: of the ends among all that happens at one instant.
            ended: told of each read that is complete.
        """
        self.bytes_per_s, self.each_bytes_per_s = bytes_per_s, each_bytes_per_s
        self.clock, self.priority, self.ended = clock, priority, ended
        self.left: dict[Load, float] = {}
        self.since_s = 0.0  # the last time that a read started or ended
        self.plans = 0  # how often the next end was worked out; older plans are void

    def start(self, load: Load, size: float) -> None:
        """Read `size` bytes; the ends of this very instant are over."""
        self._settle()
        self.left[load] = size
        self._plan(not_before_s=nextafter(self.clock.now, inf))

    def stop(self, load: Load) -> None:
        """A read is given up, if it is not complete yet."""
        if load in self.left:
            self._settle()
            del self.left[load]
            self._plan()

    def _share(self) -> float:
        return min(self.bytes_per_s / len(self.left), self.each_bytes_per_s)

    def _settle(self) -> None:
        """What was read since the last change is read."""
        now_s = self.clock.now
        for load, left in self.left.items():
            self.left[load] = max(0.0, left - self._share() * (now_s - self.since_s))
        self.since_s = now_s

    def _plan(self, not_before_s: float = 0.0) -> None:
        """Put the next end on the clock."""
        self.plans += 1
        if self.left:
            load = min(self.left, key=lambda load: (self.left[load], load.row.index))
            end_s = max(self.since_s + self.left[load] / self._share(), not_before_s)
            plan = self.plans
            self.clock.at(end_s, self.priority).callbacks.append(lambda _: self._end(load, plan))

    def _end(self, load: Load, plan: int) -> None:
        if plan == self.plans:
            self._settle()
            del self.left[load]
            self._plan()
            self.ended(load)
