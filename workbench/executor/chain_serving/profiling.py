"""The task of a process that finds out how long jobs compute in some blocks, on a machine that may do other things."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.executor.chain_serving.orders import VERSION
from workbench.executor.desk import Desk
from workbench.executor.transformer import KvCache, Shape, Stage, make_weights
from workbench.executor.transformer.shape import FLOAT_BYTES, layer_of

COLD_BYTES = 48e6
"""Weights that are read before the same ones are read again: more than a processor's caches hold."""


class Measured(NamedTuple):
    """Readings of jobs, a row a round and a column a job; the round that warms up is not among them.

    Attributes:
        processor_s: float64[rounds, jobs], seconds that the computing thread had a processor.
        wall_s: float64[rounds, jobs], seconds that went by.
    """

    processor_s: np.ndarray
    wall_s: np.ndarray


def job_seconds(desk: Desk, shape: Shape, jobs: Sequence[tuple[int, int, int]], rounds: int, seed: int) -> Measured:
    """Seconds of each job (blocks, tokens in, tokens out), computed whole: the prompt, then a pass a further token.

    Every round goes through all jobs in an order of its own, so that no job has the quiet moments of a machine to
    itself. Every pass finds its weights in memory and not in a cache, as a model's blocks are too large for caches: it
    takes others than the pass before, of the same shape. Activations enter at the first block; nothing is embedded and
    no token is chosen.

    Parameters:
        shape: has the layers of the longest job.
        rounds: that count; one more goes before them.
        seed: of weights, activations and orders.
    """
    import torch

    random = np.random.default_rng(seed)
    stages = _stages(shape, seed)
    turn = 0
    given = torch.from_numpy(random.standard_normal((shape.longest, shape.hidden), dtype=np.float32))

    def once(blocks: int, tokens_in: int, tokens_out: int) -> tuple[float, float]:
        nonlocal turn
        begun_s = time.thread_time(), time.perf_counter()
        cache, end = KvCache(shape, tokens_in + tokens_out), 0
        for more in [tokens_in] + [1] * (tokens_out - 1):
            stages[turn].run(0, blocks, [given[end : end + more]], [cache])
            turn, end = (turn + blocks) % len(stages), end + more
        return time.thread_time() - begun_s[0], time.perf_counter() - begun_s[1]

    found = np.zeros((2, rounds + 1, len(jobs)))
    with torch.inference_mode():
        for number in range(rounds + 1):
            for job in random.permutation(len(jobs)):
                found[:, number, job] = once(*jobs[job])
    return Measured(found[0, 1:], found[1, 1:])


def _stages(shape: Shape, seed: int) -> list[Stage]:
    """Models whose blocks lie in one row of blocks, each beginning one further on; the row ends where it begins."""
    first_block = [size for name, size in shape.tensors(0, 1).items() if layer_of(name) is not None]
    block_bytes = sum(FLOAT_BYTES * int(np.prod(size)) for size in first_block)
    count = shape.layers + int(np.ceil(COLD_BYTES / block_bytes))
    row = make_weights(shape.model_copy(update={"layers": count}), seed, 0, count)
    stages = [Stage(shape, "plain") for _ in range(count)]
    for first, stage in enumerate(stages):
        stage.load({name: row[_turned(name, first, count)] for name in shape.tensors(0, shape.layers)}, VERSION)
    return stages


def _turned(name: str, first: int, count: int) -> str:
    """The name in the row of blocks of what a model that begins at its block `first` calls by this name."""
    layer = layer_of(name)
    return name if layer is None else name.replace(f".{layer}.", f".{(first + layer) % count}.", 1)
