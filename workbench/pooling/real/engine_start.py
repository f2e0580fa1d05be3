"""The task of a new engine: its own start in parts, switches in it, and copies of weights."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.executor.desk import Desk
from workbench.executor.transformer import ModelFiles, read_block
from workbench.executor.transformer_serving.timing import pass_seconds
from workbench.pooling.real.asked import Asked
from workbench.pooling.real.executing import Executor

PROFILED = ((1, 64), (4, 1), (8, 1))
"""Passes that are timed at a start, requests and new tokens of each: what an engine profiles before it serves."""

CHUNK_BYTES = 1 << 20
"""Of a copy in chunks."""

Way = tuple[str, int, list[float]]


def start_engine(
    desk: Desk, asked: Asked, files: tuple[ModelFiles, ...], repeats: int
) -> tuple[dict[str, float], list[dict[str, float]], list[Way]]:
    """Start, say when this was entered and when the first token was there, and hand in the parts of the start, those of
    each later switch, and seconds of copies by way."""
    import torch

    entered_s = time.monotonic()
    weights = [_read(model) for model in files]
    read_s = time.monotonic()
    executor = Executor(asked, weights)
    made_s = time.monotonic()
    with torch.inference_mode():
        pass_seconds(desk, asked.kinds[0].shape, PROFILED, asked.device)
        profiled_s = time.monotonic()
        executor.switch(0)
        loaded_s = time.monotonic()
        last = {0: int(executor.start(0, asked.prompts[0].tokens).argmax())}
        desk.say((entered_s, time.monotonic()))
        parts = {
            "weights": read_s - entered_s + loaded_s - profiled_s,
            "caches": made_s - read_s,
            "profiling": profiled_s - made_s,
        }
        switches = _switches(executor, asked, last, repeats)
    return parts, switches, _copies(weights[0], asked.device, repeats)


def _read(files: ModelFiles) -> dict[str, np.ndarray]:
    return {name: values for block in files.blocks for name, values in read_block(block.path).tensors.items()}


def _switches(executor: Executor, asked: Asked, last: dict[int, int], repeats: int) -> list[dict[str, float]]:
    """Alternate between two models, one request of each; the first one there and back is not counted."""
    found, made = [], {0: 1, 1: 0}
    for turn in range(2 * repeats + 2):
        model = 1 - turn % 2
        out_s = executor.send_away([1 - model])
        _, load_s = executor.switch(model)
        in_s, begun_s = 0.0, time.monotonic()
        if made[model] == 0:
            last[model] = int(executor.start(model, asked.prompts[model].tokens).argmax())
        else:
            in_s = executor.call([model], [len(asked.prompts[model].tokens) + made[model] - 1])
            begun_s = time.monotonic()
            last[model] = int(executor.step([model], [last[model]]).argmax())
        made[model] += 1
        step_s = time.monotonic() - begun_s
        found.append({"KV out": out_s, "weights": load_s, "KV in": in_s, "step": step_s})
    return found[2:]


def _copies(weights: dict[str, np.ndarray], device: str, repeats: int) -> list[Way]:
    import torch

    source = torch.from_numpy(np.concatenate([values.reshape(-1).view(np.uint8) for values in weights.values()]))
    buffer = torch.zeros(source.numel(), dtype=torch.uint8, device=device)

    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize(device)

    def timed(copy: Callable[[], Any]) -> list[float]:
        found = []
        for _ in range(repeats + 1):
            begun_s = time.monotonic()
            copy()
            wait()
            found.append(time.monotonic() - begun_s)
        return found[1:]

    def into_buffer(given: Any, chunk: int) -> Callable[[], None]:
        def copy() -> None:
            for at in range(0, given.numel(), chunk):
                buffer[at : at + chunk].copy_(given[at : at + chunk], non_blocking=True)

        return copy

    def into_new() -> None:
        torch.empty(source.numel(), dtype=torch.uint8, device=device).copy_(source)

    whole = source.numel()
    ways: list[Way] = [
        ("pageable, into new memory", whole, timed(into_new)),
        ("pageable, into one buffer", whole, timed(into_buffer(source, whole))),
        ("pageable, into one buffer, in chunks", CHUNK_BYTES, timed(into_buffer(source, CHUNK_BYTES))),
    ]
    if device != "cpu":
        pinned = source.pin_memory()
        ways += [
            ("pinned, into one buffer", whole, timed(into_buffer(pinned, whole))),
            ("pinned, into one buffer, in chunks", CHUNK_BYTES, timed(into_buffer(pinned, CHUNK_BYTES))),
        ]
    return ways
