"""One process that several models share: it switches weights, moves KV caches, prefills and decodes."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.executor.transformer import Stage, forward, make_weights, prefill
from workbench.pooling.real.asked import BLOCK_TOKENS, Asked, Clock
from workbench.pooling.real.memory import (
    HostCaches,
    HostModels,
    TurnCache,
    TurnCaches,
    WeightBuffer,
    aligned_bytes,
    arena_bytes,
)

VERSION = "model {}"


class Executor:
    """What is made once and used by all models: one weight buffer, the host's models, slabs, an arena, a stage each.

    Parameters:
        asked: the run; faults of its switches and caches are planted here.
        weights: of each model, tensors by checkpoint name.

    Attributes:
        now: the run's clock.
        resident: number of the model that can run, -1 for none.
    """

    def __init__(self, asked: Asked, weights: list[dict[str, np.ndarray]]):
        self.asked, device = asked, asked.device
        self.now = now_by(asked.clock)
        largest = max(map(aligned_bytes, weights))
        self.buffer = WeightBuffer(largest, device)
        self.models = HostModels(weights, device)
        self.host = HostCaches(asked.slab_bytes, asked.slabs, device)
        batches = [
            arena_bytes(kind.shape, sum(prompt.model == model for prompt in asked.prompts) or 1)
            for model, kind in enumerate(asked.kinds)
        ]
        self.arena = TurnCaches(max(batches), device)
        arithmetic = "invariant" if asked.keep else "plain"
        self.stages = [Stage(kind.shape, arithmetic, device, self.buffer) for kind in asked.kinds]
        self.resident, self._half = -1, 0
        self.caches: dict[int, TurnCache] = {}
        self._ahead: tuple[int, threading.Thread, list[Exception]] | None = None
        self._spoilt = False

    def switch(self, model: int) -> tuple[bool, float]:
        """Make another model the resident one: whether its weights were fetched ahead, and seconds of waiting."""
        begun_s = self.now()
        fetched = self._fetched() == model  # nobody fetches a model that is not the next one
        if not fetched:
            self._bring(model)
        if self.resident >= 0:
            self._drop(self.resident)
        self.resident, self._half = model, 1 - self._half
        if self.asked.fault == "weights" and not self._spoilt:
            self._swap_blocks(model)
        return fetched, self.now() - begun_s

    def fetch(self, model: int) -> None:
        """Begin to copy a model into the free half, in a thread beside the computing."""
        failures: list[Exception] = []

        def bring() -> None:
            try:
                self._bring(model)
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=bring, daemon=True)
        thread.start()
        self._ahead = model, thread, failures

    def _fetched(self) -> int:
        """The model that was fetched, once its copy is done; -1 for none."""
        if self._ahead is None:
            return -1
        (model, thread, failures), self._ahead = self._ahead, None
        thread.join()
        if failures:
            raise failures[0]
        return model

    def _bring(self, model: int) -> None:
        self.buffer.fill(1 - self._half)
        self.stages[model].load(self.models.of(model), VERSION.format(model))

    def _drop(self, model: int) -> None:
        stage = self.stages[model]
        stage.free(0, stage.shape.layers)

    def start(self, request: int, prompt: Sequence[int]) -> Any:
        """Process a prompt: the logits behind it, (1, vocabulary)."""
        self.caches[request] = self.arena.empty(self.stages[self.resident].shape)
        return prefill([self.stages[self.resident]], [prompt], [self.caches[request]])

    def step(self, requests: Sequence[int], last: Sequence[int]) -> Any:
        """One token for each request: logits (requests, vocabulary)."""
        stage = self.stages[self.resident]
        return stage.logits(forward([stage], [[token] for token in last], [self.caches[r] for r in requests]))

    def send_away(self, requests: Sequence[int]) -> float:
        """Copy the caches of requests to the host and free the arena; seconds."""
        begun_s = self.now()
        for request in requests:
            self.host.take(request, self.caches[request])
        self._settle()
        self.caches.clear()
        self.arena.clear()
        return self.now() - begun_s

    def call(self, requests: Sequence[int], tokens: Sequence[int]) -> float:
        """Copy the caches of requests here, of so many tokens each; seconds."""
        begun_s = self.now()
        for request, count in zip(requests, tokens, strict=True):
            lose = -1
            if self.asked.fault == "page" and not self._spoilt and count >= 2 * BLOCK_TOKENS:
                self._spoilt, lose = True, 0
            self.caches[request] = self.arena.empty(self.stages[self.resident].shape)
            self.host.give(request, self.caches[request], count, VERSION.format(self.resident), lose)
        self._settle()
        return self.now() - begun_s

    def _settle(self) -> None:
        """Copies are done, on a GPU too, before anybody reads or frees what they read."""
        if self.asked.device != "cpu":
            import torch

            torch.cuda.synchronize(self.asked.device)
        self.host.settle()

    def _swap_blocks(self, model: int) -> None:
        """Swap two equal parts of a matrix where it lies, as a copy that mixed up two blocks would."""
        self._spoilt = True
        rows = self.stages[model].weight("model.layers.0.mlp.up_proj.weight")
        half = len(rows) // 2
        first, second = rows[:half].clone(), rows[half : 2 * half].clone()
        rows[:half], rows[half : 2 * half] = second, first


def now_by(clock: Clock) -> Callable[[], float]:
    """What tells the time."""
    return time.process_time if clock == "processor" else time.monotonic


def made_weights(asked: Asked, model: int) -> dict[str, np.ndarray]:
    """The weights of a model, one matrix of the first rounded to bfloat16 where that fault is planted."""
    kind = asked.kinds[model]
    weights = make_weights(kind.shape, kind.seed, 0, kind.shape.layers)
    if asked.fault == "rounded" and model == 0:
        import torch

        name = "model.layers.0.self_attn.v_proj.weight"
        weights[name] = torch.from_numpy(weights[name]).bfloat16().float().numpy()
    return weights
