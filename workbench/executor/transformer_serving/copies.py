"""The task of timing copies from pinned host memory to a GPU, one at a time."""

from collections.abc import Sequence
from statistics import median

from workbench.executor.desk import Desk


def gpu_copy_seconds(desk: Desk, sizes: Sequence[int], readings: int) -> list[float] | None:
    """Median seconds of one copy of each size, by CUDA events; None where torch finds no GPU."""
    import torch

    if not torch.cuda.is_available():
        return None
    source = torch.ones(max(sizes), dtype=torch.uint8).pin_memory()
    target = torch.empty(max(sizes), dtype=torch.uint8, device="cuda")

    def once(size: int) -> float:
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        target[:size].copy_(source[:size], non_blocking=True)
        ended.record()
        ended.synchronize()
        return begun.elapsed_time(ended) / 1e3

    return [median(once(size) for _ in range(readings + 1)) for size in sizes]
