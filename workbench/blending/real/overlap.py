"""The tasks of the worker that measure overlap: bare operations, and the two parts of a step."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.blending.real.segments import PathCache, Segment
from workbench.blending.real.serving import VERSION, Beside, Model, loaded
from workbench.executor.desk import Desk
from workbench.executor.transformer import Stage, forward


class Sizes(NamedTuple):
    """Sizes of the bare operations.

    Attributes:
        rows, inner, columns: of a matrix product.
        piece_bytes, stream_bytes: a piece that is summed at a time, and the array it comes from.
    """

    rows: int
    inner: int
    columns: int
    piece_bytes: int
    stream_bytes: int


ON_CPU = Sizes(256, 256, 256, 1 << 22, 1 << 28)
"""Three such matrices fit in a core's own cache, so that products read no memory; the array is far larger than any."""
ON_GPU = Sizes(1024, 4096, 14336, 1 << 29, 1 << 31)
"""A projection of Llama-3-8B with a dense batch of 1,024 tokens, and pieces far larger than the last cache."""

SHARED = 96
"""Tokens of the prefix that a quarter of those who decode share."""


class Sample(NamedTuple):
    """A step to measure.

    Attributes:
        tokens, behind: of its one prompt: tokens to compute, and those of a shared prefix before them (0 for none).
        decodes, context: how many decode, and behind how many tokens each; a quarter of them share a prefix.
    """

    tokens: int
    behind: int
    decodes: int
    context: int

    @property
    def pairs(self) -> int:
        """Growth of the squared prompt positions."""
        return (self.behind + self.tokens) ** 2 - self.behind**2

    @property
    def read(self) -> int:
        """KV tokens that are read, the new ones among them."""
        return self.decodes * (self.context + 1)


def operations(desk: Desk, counts: Sequence[tuple[int, int]], rounds: int, device: str) -> np.ndarray:
    """The task: seconds of matrix products alone, of streaming alone and of both, float64 (counts, 3).

    Parameters:
        counts: (products, pieces) of each reading.
        rounds: the quickest of so many is taken; readings take turns, so that a busy spell hits all alike.
        device: "cpu", where each kind has a thread, or a CUDA device, where each has a stream.
    """
    import torch

    sizes = ON_CPU if device == "cpu" else ON_GPU
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    generator = torch.Generator().manual_seed(0)

    def made(rows: int, columns: int) -> Any:
        return torch.randn(rows, columns, generator=generator).to(device, dtype)

    left, right = made(sizes.rows, sizes.inner), made(sizes.inner, sizes.columns)
    product = torch.empty(sizes.rows, sizes.columns, dtype=dtype, device=device)
    stream = torch.ones(sizes.stream_bytes // 4, device=device).split(sizes.piece_bytes // 4)

    def multiply(times: int) -> Callable[[], None]:
        def work() -> None:
            for _ in range(times):
                torch.mm(left, right, out=product)

        return work

    def read(pieces: int) -> Callable[[], None]:
        def work() -> None:
            for place in range(pieces):
                stream[place % len(stream)].sum()

        return work

    return _quickest([(multiply(products), read(pieces)) for products, pieces in counts], rounds, device)


def parts(desk: Desk, model: Model, samples: Sequence[Sample], rounds: int) -> np.ndarray:
    """The task: seconds of the prompts of a step alone, of its decoding alone and of both, float64 (samples, 3)."""
    stage = loaded(model)
    return _quickest([(_prompts(stage, sample), _decodes(stage, sample)) for sample in samples], rounds, model.device)


def _quickest(pairs: Sequence[tuple[Callable[[], Any], Callable[[], Any]]], rounds: int, device: str) -> np.ndarray:
    best = np.full((len(pairs), 3), np.inf)
    with Beside(device) as beside:
        for _ in range(rounds + 1):  # the first round warms up
            found = np.empty_like(best)
            for place, pair in enumerate(pairs):
                found[place, :2] = beside.run(*pair, False)[:2]
                found[place, 2] = beside.run(*pair, True)[2]
            best = np.minimum(best, found)
    return best


def _prompts(stage: Stage, sample: Sample) -> Callable[[], None]:
    before = _filled(stage, 1 if sample.behind else 0, sample.behind, sample.behind)

    def work() -> None:
        cache = PathCache([*before, Segment(stage.shape, sample.tokens, stage.device)])
        stage.logits(forward([stage], [[0] * sample.tokens], [cache]))

    return work


def _decodes(stage: Stage, sample: Sample) -> Callable[[], None]:
    sharing = sample.decodes // 4
    (prefix,) = _filled(stage, 1, SHARED, SHARED)
    behind = [sample.context - (SHARED if place < sharing else 0) for place in range(sample.decodes)]
    own = [_filled(stage, 1, tokens, tokens + 1)[0] for tokens in behind]
    caches = [PathCache([prefix, one] if place < sharing else [one]) for place, one in enumerate(own)]

    def work() -> None:
        for segment, tokens in zip(own, behind, strict=True):
            segment.length = [tokens] * stage.shape.layers
        stage.logits(forward([stage], [[0]] * len(caches), caches)).argmax(-1).tolist()

    return work


def _filled(stage: Stage, count: int, tokens: int, capacity: int) -> list[Segment]:
    """Segments whose first tokens hold something."""
    made = [Segment(stage.shape, capacity, stage.device) for _ in range(count)]
    for segment in made:
        segment.version, segment.length = VERSION, [tokens] * stage.shape.layers
        for rows in segment.rows:
            rows.fill_(0.5)
    return made
