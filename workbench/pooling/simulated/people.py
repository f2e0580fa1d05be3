"""A request, a group of prompts, a batch: what passes through a pool."""

from collections import deque

from workbench.pooling.model.lowered import INSIDE, Requests

NOWHERE, ON_GPU, IN_HOST, CALLED, COMING = "nowhere", "on the GPU", "in the host", "called", "coming"


class Request:
    """One request and what became of it so far."""

    def __init__(self, number: int, arrival_s: float, prompt: int, output: int, model: int):
        self.number, self.arrival_s, self.prompt, self.output, self.model = number, arrival_s, prompt, output, model
        self.status = INSIDE
        self.token_s: list[float] = []
        self.finish_s = self.wait_s = float("nan")
        self.prefill_s = self.decode_s = self.moved_s = self.waited_s = 0.0
        self.prefill_gpu = self.decode_gpu = -1
        self.begun = False
        self.kv, self.leaving, self.blocks, self.from_s = NOWHERE, False, 0, 0.0
        self.reserved = 0

    @classmethod
    def all_of(cls, asked: Requests) -> "list[Request]":
        """All requests of a run, in order of arrival."""
        columns = (asked.arrival_s, asked.prompt, asked.output, asked.model)
        return [cls(k, *row) for k, row in enumerate(zip(*(column.tolist() for column in columns), strict=True))]

    @property
    def tokens(self) -> int:
        """Of the context: prompt and what was made."""
        return self.prompt + len(self.token_s)


class Group:
    """Prompts of one model that are processed one behind the other.

    Attributes:
        taken: how many ever joined.
        waiting: those that have not begun.
    """

    def __init__(self, model: int):
        self.model, self.taken = model, 0
        self.waiting: deque[Request] = deque()


class Batch:
    """Requests of one model that decode together."""

    def __init__(self, model: int):
        self.model, self.requests, self.quota_s, self.in_round = model, [], 0.0, False
