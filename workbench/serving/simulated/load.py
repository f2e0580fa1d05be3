"""One start of a row: where its weights come from, when it serves, what it was good for."""

from math import isnan, nan

from workbench.serving.simulated.row import Row


class Load:
    """Weights on their way to a row, and then what the row does with them until it is empty again."""

    __slots__ = (
        "end_s", "first_token_s", "helped", "operation", "piped_s", "pipeline", "row", "source_count", "start_s",
        "tier",
    )  # fmt: skip

    def __init__(self, row: Row, start_s: float, tier: int, source_count: int, operation: int):
        self.row, self.start_s, self.tier = row, start_s, tier
        self.source_count, self.operation = source_count, operation
        self.end_s = self.piped_s = self.first_token_s = nan
        self.helped = 0
        self.pipeline: int | None = None  # number of the one that the row is, or will be, a member of

    def helps(self, now_s: float, first_token: bool, done: int) -> None:
        """A step of the row ended: whether some request made its first token, and how many requests are done."""
        if first_token and isnan(self.first_token_s):
            self.first_token_s = now_s
        self.helped += done
