"""What a fleet that scales writes down: every change of a row's state, every load, every decision."""

from workbench.queueing.simulated.clock import Clock
from workbench.serving.simulated.load import Load


class FleetLog:
    """Three lists, each in the order in which things happened."""

    def __init__(self, clock: Clock):
        self.clock = clock
        self.states: list[tuple[float, int, int]] = []
        self.loads: list[Load] = []
        self.ticks: list[tuple[float, int, int, int]] = []

    def changed(self, row: int, state: int) -> None:
        """A row has another state now."""
        self.states.append((self.clock.now, row, state))

    def decided(self, group: int, want: int, n: int) -> None:
        """A group that has `n` rows up or starting shall have `want`."""
        self.ticks.append((self.clock.now, group, want, n))
