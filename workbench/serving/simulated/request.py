"""A request on its way through the cluster, with what it has made and what of it is stored."""

from math import nan

from workbench.serving.model.lowered import INSIDE


class Request:
    """One request: what was asked (never changes) and how far it is."""

    __slots__ = (
        "arrival_s", "cached", "draws", "evictions", "finish_s", "first_token_s", "index", "instance", "last", "made",
        "model", "moves", "need", "output", "prefilled_on", "prefilling", "prefix", "prompt", "rank", "restarts",
        "room", "status", "stored", "version", "wait_s",
    )  # fmt: skip

    def __init__(
        self, index: int, arrival_s: float, prompt: int, output: int, model: int, draws: list[float], rank: int,
        prefix: list[int],
    ):  # fmt: skip
        self.index, self.arrival_s, self.model, self.draws, self.rank = index, arrival_s, model, draws, rank
        self.prompt, self.output, self.prefix = prompt, output, prefix
        self.status, self.instance, self.prefilled_on = INSIDE, -1, -1
        self.wait_s = self.first_token_s = self.finish_s = nan
        self.made = self.evictions = self.moves = self.restarts = self.cached = 0
        self.version = -1  # of the weights on which it was admitted
        self.last = None  # the iteration of its latest token
        self.forget()

    def forget(self) -> None:
        """All its KV is gone: what was asked and what was made so far is to be computed (anew)."""
        self.stored = 0
        self.room = 0  # tokens that the blocks it holds have room for
        self.need = self.prompt + self.made
        self.prefilling = True

    def start_anew(self) -> None:
        """All that was made is void, since it goes on with other weights."""
        self.restarts += 1
        self.made, self.version, self.first_token_s, self.last = 0, -1, nan, None
        self.forget()

    def start_from(self, cached: int) -> None:
        """Of what is to be computed, so many leading tokens are there already; at least one never is."""
        self.stored = min(cached, self.need - 1)
        self.cached += self.stored

    def store(self, tokens: int) -> bool:
        """Prefill stores so many tokens more; whether that was the last of it."""
        self.stored += tokens
        self.prefilling = self.stored < self.need
        return not self.prefilling

    @property
    def most_stored(self) -> int:
        """Tokens that a place must have room for, or it cannot take this request."""
        return self.prompt + self.output

    @property
    def tokens_left(self) -> int:
        """Tokens still to be processed: what prefill has not stored, and what is not made yet."""
        return (self.need - self.stored if self.prefilling else 0) + self.output - self.made
