"""What is known of the requests of a run: kept over its phases, so that nothing that was said is lost with a node."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.executor.transformer_serving.orders import Item
from workbench.scaling.real.outcome import Prompt


class Told(NamedTuple):
    """One token of a request as the parent heard of it."""

    at_s: float
    token: int
    logits: np.ndarray
    route: int


class Book:
    """All that is known of the requests, kept over the phases of a run.

    Attributes:
        prompts: the requests.
        told: of each request the tokens so far.
        moves: of each request how often it changed its route.
        switches: rows of `LiveRun.switches` but for the token after, as (request, tokens before, instant).
        names: for each phase the names of its routes.
    """

    def __init__(self, prompts: Sequence[Prompt]):
        self.prompts = prompts
        self.told: list[list[Told]] = [[] for _ in prompts]
        self.moves = [0] * len(prompts)
        self.switches: list[tuple[int, int, float]] = []
        self.names: list[str] = []

    def item(self, request: int) -> Item:
        """What a node is told of a request: its prompt and all it has said."""
        prompt, told = self.prompts[request], self.told[request]
        return Item(request, (*prompt.tokens, *(one.token for one in told)), prompt.output - len(told))

    def unfinished(self, requests: Sequence[int]) -> list[int]:
        """Those that are still to say something."""
        return [request for request in requests if len(self.told[request]) < self.prompts[request].output]
