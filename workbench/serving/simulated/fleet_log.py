"""What a fleet that scales writes down: changes of a row's state, loads, flows of weights, decisions."""

from workbench.queueing.simulated.clock import Clock
from workbench.serving.kernels.serving import MOST_DECISIONS
from workbench.serving.model.telling_apart import too_many_decisions
from workbench.serving.simulated.links import Flow
from workbench.serving.simulated.load import Load
from workbench.serving.simulated.row import Row


class FleetLog:
    """Four lists, each in the order in which things happened."""

    def __init__(self, clock: Clock, tick_s: float):
        self.clock, self.tick_s = clock, tick_s
        self.states: list[tuple[float, int, int]] = []
        self.loads: list[Load] = []
        self.ticks: list[tuple[float, int, int, int]] = []
        self.chains: list[tuple[Flow, int, int, list[Row]]] = []  # with operation, source, and rows that it passes

    def changed(self, row: int, state: int) -> None:
        """A row has another state now."""
        self.states.append((self.clock.now, row, state))

    def decided(self, group: int, want: int, n: int) -> None:
        """A group that has `n` rows up or starting shall have `want`.

        Raises:
            UserError: more decisions than a run may have.
        """
        if len(self.ticks) > MOST_DECISIONS:
            raise too_many_decisions(self.tick_s)
        self.ticks.append((self.clock.now, group, want, n))
