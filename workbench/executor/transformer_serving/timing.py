"""How fast one process here runs all layers of a small transformer: what decides how far time must be stretched."""

import time
from collections.abc import Sequence
from statistics import median

from workbench.executor.desk import Desk
from workbench.executor.transformer import KvCache, Shape, Stage, forward, make_weights

READINGS = 3


def pass_seconds(desk: Desk, shape: Shape, passes: Sequence[tuple[int, int]], device: str = "cpu") -> list[float]:
    """The task: median seconds of a pass through all layers, for each (requests, new tokens of each), caches empty."""
    import torch

    stage = Stage(shape, "invariant", device)
    stage.load(make_weights(shape, 0, 0, shape.layers), "timing")

    def once(requests: int, tokens: int) -> float:
        caches = [KvCache(shape, tokens, device) for _ in range(requests)]
        begun_s = time.perf_counter()
        with torch.inference_mode():
            stage.logits(forward([stage], [[0] * tokens] * requests, caches)).cpu()  # waits for a GPU
        return time.perf_counter() - begun_s

    once(1, 1)
    return [median(once(*one) for _ in range(READINGS)) for one in passes]
