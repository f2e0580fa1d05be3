"""One start of a row: where its weights come from, when it serves, what it was good for."""

from math import nan

from workbench.serving.simulated.request import Request
from workbench.serving.simulated.row import Row


class Load:
    """Weights on their way to a row, and then what the row does with them until it is empty again."""

    __slots__ = (
        "end_s", "firsts", "helped", "operation", "piped_s", "pipeline", "row", "source_count", "start_s", "tier",
        "version",
    )  # fmt: skip

    def __init__(self, row: Row, start_s: float, tier: int, source_count: int, operation: int):
        self.row, self.start_s, self.tier, self.version = row, start_s, tier, row.version
        self.source_count, self.operation = source_count, operation
        self.end_s = self.piped_s = nan
        self.firsts: list[tuple[float, Request]] = []  # first tokens that requests made there
        self.helped = 0
        self.pipeline: int | None = None  # number of the one that the row is, or will be, a member of

    def helps(self, now_s: float, firsts: list[Request], done: int) -> None:
        """A step of the row ended: which requests made their first token, and how many requests are done."""
        self.firsts += [(now_s, request) for request in firsts]
        self.helped += done

    @property
    def first_token_s(self) -> float:
        """When a request made its first token there, of those that did not become void; NaN if none did."""
        return next((time_s for time_s, request in self.firsts if request.first_token_s == time_s), nan)
