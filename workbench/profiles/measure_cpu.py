"""What this machine's processor and memory can do."""

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.profiles.measure_timing import Measured, repeat, timed


def memory_copy(seconds: float, copied_bytes: int) -> Measured:
    """How fast one thread copies memory (bytes copied; reading and writing each count once)."""
    source = np.ones(copied_bytes, np.uint8)
    target = np.empty_like(source)
    how = f"numpy copy of {copied_bytes >> 20} MiB, one thread"
    name = "memory_copy_bytes_per_s"
    return repeat(name, "bytes/s", lambda: timed(lambda: np.copyto(target, source)), seconds, copied_bytes, how)


def weight_stream(seconds: float, matrix_bytes: int) -> Measured:
    """How fast a matrix of weights streams past one token (float32 matrix times vector)."""
    side = max(64, int((matrix_bytes / 4) ** 0.5))
    matrix, vector = np.ones((side, side), np.float32), np.ones(side, np.float32)
    out = np.empty(side, np.float32)
    how = f"numpy float32 matrix of {side} x {side} times vector, {os.cpu_count()} processors"
    run = lambda: timed(lambda: np.matmul(matrix, vector, out=out))  # noqa: E731
    return repeat("weight_stream_bytes_per_s", "bytes/s", run, seconds, matrix.nbytes, how)


def matrix_product(seconds: float) -> Measured:
    """How fast numpy multiplies float32 matrices."""

    def product(side: int) -> Callable[[], float]:
        left, right, out = (np.ones((side, side), np.float32) for _ in range(3))
        return lambda: timed(lambda: np.matmul(left, right, out=out))

    side = _side(product, seconds)
    how = f"numpy float32, {side} x {side} x {side}, {os.cpu_count()} processors"
    return repeat("matrix_product_flops_per_s", "flop/s", product(side), seconds, 2.0 * side**3, how)


def torch_matrix_products(seconds: float) -> list[Measured]:
    """How fast torch multiplies matrices on the processor, in float32 and bfloat16; nothing without torch."""
    if importlib.util.find_spec("torch") is None:
        return []
    import torch

    rows = []
    for dtype in (torch.float32, torch.bfloat16):

        def product(side: int, dtype: Any = dtype) -> Callable[[], float]:
            left, right, out = (torch.ones((side, side), dtype=dtype) for _ in range(3))
            return lambda: timed(lambda: torch.mm(left, right, out=out))

        side = _side(product, seconds / 2)
        name = str(dtype).removeprefix("torch.")
        how = f"torch {torch.__version__} {name} on the processor, {side} x {side} x {side}"
        quantity = f"torch_{name}_matrix_product_flops_per_s"
        rows.append(repeat(quantity, "flop/s", product(side), seconds / 2, 2.0 * side**3, how))
    return rows


def _side(product: Callable[[int], Callable[[], float]], seconds: float) -> int:
    """Rows of matrices that leave time for about eight runs, 256 to 2,048: some processors emulate bfloat16."""
    smallest, largest = 256, 2048
    run = product(smallest)
    run()
    fitting = smallest * (seconds / 8 / run()) ** (1 / 3)
    return int(min(largest, max(smallest, fitting // 64 * 64)))
