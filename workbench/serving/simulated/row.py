"""A row of the fleet: one model on one place, and how far its weights are."""

from workbench.serving.model.scaled import DRAINING, PIPED, STARTING, UP, WARM
from workbench.serving.simulated.instance import Instance


class Row:
    """A model that a place may hold: empty, starting, piped, up, draining, warm or dead.

    Only a row that is up or piped is given requests. One that is piped serves by turns with others while its weights
    are still on their way. One that drains finishes those it has, and is warm then: without work, its weights there.
    """

    __slots__ = (
        "changes_role", "group", "host", "instance", "piped_form", "place", "state", "uses", "version",
        "warm_since_s", "warm_until_s",
    )  # fmt: skip

    def __init__(
        self, instance: Instance, group: int, place: int, host: int, state: int, piped_form: list[list[float]]
    ):  # fmt: skip
        self.instance, self.group, self.place, self.host, self.state = instance, group, place, host, state
        self.piped_form = piped_form
        self.warm_since_s = self.warm_until_s = 0.0  # these mean something only while the row is warm
        self.uses = 0  # operations that read its weights
        self.version = 0  # of its weights, or of those that it waits for
        self.changes_role = False  # whether it drains to give its place to the other role of its model

    @property
    def index(self) -> int:
        return self.instance.index

    @property
    def model(self) -> int:
        return self.instance.model

    @property
    def occupied(self) -> bool:
        """Whether the place is taken by this row."""
        return self.state in (STARTING, PIPED, UP, DRAINING, WARM)

    def become(self, state: int) -> None:
        """Another state from now on."""
        self.state, self.changes_role = state, False
        self.instance.up = state in (UP, PIPED)
