"""What this machine's GPUs can do (CUDA or ROCm through torch); nothing where there is none."""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

from workbench.profiles.measure_timing import Measured, repeat


def gpu_count() -> int:
    """Number of GPUs that torch can use; 0 without torch."""
    if importlib.util.find_spec("torch") is None:
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def gpus(seconds: float, copied_bytes: int = 256 << 20, side: int = 8192) -> list[Measured]:
    """Copies from host memory (pinned, pageable, to all at once), between GPUs, matrix products and weight streaming.

    Parameters:
        seconds: time budget of all of them together.
        copied_bytes: bytes of one copy.
        side: rows and columns of the matrices.
    """
    count = gpu_count()
    if count == 0:
        return []
    import torch

    devices = [torch.device("cuda", index) for index in range(count)]
    share = seconds / (5 + (count > 1))
    rows = [
        host_copy(devices[:1], copied_bytes, True, share, "gpu_host_to_device_pinned"),
        host_copy(devices[:1], copied_bytes, False, share, "gpu_host_to_device_pageable"),
        device_copy(devices, copied_bytes, share),
        gpu_matrix_product(devices[0], side, share),
        gpu_weight_stream(devices[0], side, share),
    ]
    if count > 1:
        rows.append(host_copy(devices, copied_bytes, True, share, "gpu_host_to_all_devices_pinned"))
    torch.cuda.empty_cache()
    return rows


def host_copy(devices: list[Any], copied_bytes: int, pinned: bool, seconds: float, name: str) -> Measured:
    """Copy host memory to each device, all at once; the rate is that of all together."""
    import torch

    sources = [torch.empty(copied_bytes, dtype=torch.uint8, pin_memory=pinned) for _ in devices]
    targets = [torch.empty(copied_bytes, dtype=torch.uint8, device=device) for device in devices]

    def copy() -> None:
        for source, target in zip(sources, targets, strict=True):
            target.copy_(source, non_blocking=True)

    memory = "pinned" if pinned else "pageable"
    how = f"torch {torch.__version__}, {copied_bytes >> 20} MiB of {memory} memory to each of {len(devices)} GPU(s)"
    amount = copied_bytes * len(devices)
    return repeat(f"{name}_bytes_per_s", "bytes/s", _synchronised(copy, devices), seconds, amount, how)


def device_copy(devices: list[Any], copied_bytes: int, seconds: float) -> Measured:
    """Copy from the first device to the second, or within the first where there is only one (bytes copied)."""
    import torch

    source = torch.empty(copied_bytes, dtype=torch.uint8, device=devices[0])
    target = torch.empty(copied_bytes, dtype=torch.uint8, device=devices[min(1, len(devices) - 1)])
    between = len(devices) > 1
    name = "gpu_device_to_device_bytes_per_s" if between else "gpu_within_device_bytes_per_s"
    how = f"torch {torch.__version__}, {copied_bytes >> 20} MiB, {'GPU 0 to GPU 1' if between else 'inside GPU 0'}"
    run = _synchronised(lambda: target.copy_(source, non_blocking=True), devices[:2])
    return repeat(name, "bytes/s", run, seconds, copied_bytes, how)


def gpu_matrix_product(device: Any, side: int, seconds: float) -> Measured:
    """Multiply bfloat16 matrices."""
    import torch

    left, right = (torch.randn((side, side), device=device).to(torch.bfloat16) for _ in range(2))
    out = torch.empty_like(left)
    how = f"torch {torch.__version__} bfloat16, {side} x {side} x {side}"
    run = _synchronised(lambda: torch.mm(left, right, out=out), [device])
    return repeat("gpu_matrix_product_flops_per_s", "flop/s", run, seconds, 2.0 * side**3, how)


def gpu_weight_stream(device: Any, side: int, seconds: float) -> Measured:
    """Stream a bfloat16 matrix of weights past one token."""
    import torch

    matrix = torch.zeros((4 * side, side), dtype=torch.bfloat16, device=device)
    vector = torch.zeros((side, 1), dtype=torch.bfloat16, device=device)
    out = torch.empty((4 * side, 1), dtype=torch.bfloat16, device=device)
    how = f"torch {torch.__version__} bfloat16, {4 * side} x {side} times vector"
    run = _synchronised(lambda: torch.mm(matrix, vector, out=out), [device])
    amount = matrix.numel() * matrix.element_size()
    return repeat("gpu_weight_stream_bytes_per_s", "bytes/s", run, seconds, amount, how)


def _synchronised(call: Callable[[], object], devices: list[Any]) -> Callable[[], float]:
    """A run that waits for the devices before the clock starts and before it stops; work on a CPU needs no waiting."""
    import torch

    def wait() -> None:
        for device in devices:
            if device.type != "cpu":
                torch.cuda.synchronize(device)

    def run() -> float:
        wait()
        start = time.perf_counter()
        call()
        wait()
        return time.perf_counter() - start

    return run
