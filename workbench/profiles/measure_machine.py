"""Measure this machine and keep the result as the profile "local"."""

import datetime
import os
import platform
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

import polars as pl

from workbench.errors import InputError
from workbench.paths import user_data_folder, write_atomic
from workbench.profiles.local_profile import local_file
from workbench.profiles.measure_cpu import matrix_product, memory_copy, torch_matrix_products, weight_stream
from workbench.profiles.measure_disk import disk_read
from workbench.profiles.measure_gpu import gpu_count, gpus
from workbench.profiles.measure_peer import loopback, peer_exchange
from workbench.profiles.measure_processes import process_start
from workbench.profiles.measure_tables import profile_tables
from workbench.profiles.measure_timing import Measured
from workbench.profiles.toml_writing import toml_text

LONGEST_S = 60.0

More = Callable[[float], list[Measured]]
"""A further measurement: seconds it may take -> rows."""


def measure(
    seconds: float = LONGEST_S,
    peer: str | None = None,
    token: str = "",
    progress: Callable[[str, float], None] | None = None,
    more: Mapping[str, More] = MappingProxyType({}),
) -> pl.DataFrame:
    """What can this machine do? Measures it and saves the profile "local".

    Memory copy, weight streaming, matrix products, disk read, loopback, process start; on GPUs copies from pinned and
    pageable host memory, to all at once and between devices, and matrix products; with a peer, host to host over TCP.

    Parameters:
        seconds: time budget for everything, at most 60; short budgets measure with smaller buffers.
        peer: "HOST:PORT" of a listener that was started on the other host (`listen_for_peer`), or None.
        token: the listener's one-time token.
        more: further measurements by name, each told its share of the seconds; the rows `overlap_memory_slope` and
            `overlap_compute_slope` (see `blending.real.measuring`) become the accelerator's.
        progress: called before each measurement with its name and the share of the work that is done (0 to 1).

    Returns:
        One row per quantity: quantity, median, low, high (quartiles), unit, runs, how.

    Raises:
        InputError: a budget that is not above 0 and at most 60 s; a bad peer. WorkbenchError: something failed.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST_S:
        raise InputError(
            f"a time budget of {seconds!r} s cannot be used", f"give more than 0 and at most {LONGEST_S:g}"
        )
    rows: list[Measured] = []
    steps = _steps(seconds, peer, token, more)
    for index, (name, run) in enumerate(steps):
        if progress is not None:
            progress(name, index / len(steps))
        found = run()
        rows += found if isinstance(found, list) else [found]
    tables = profile_tables(rows, _machine(), peer)
    write_atomic(local_file(), toml_text(tables))
    if progress is not None:
        progress("saved", 1.0)
    return pl.DataFrame([row.model_dump() for row in rows])


def _steps(
    seconds: float, peer: str | None, token: str, more: Mapping[str, More]
) -> list[tuple[str, Callable[[], Any]]]:
    scale = min(1.0, seconds / 20)
    buffer_bytes = max(1 << 20, int(scale * (256 << 20)))
    has_gpu = gpu_count() > 0
    # Shares of the budget; the rest covers warm-up runs and the least number of runs of the slow ones.
    unit = seconds * 0.8 / (7 + 4 * has_gpu + 2 * (peer is not None) + 2 * len(more))
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("memory copy", lambda: memory_copy(unit, buffer_bytes)),
        ("weight streaming", lambda: weight_stream(unit, buffer_bytes)),
        ("matrix product", lambda: matrix_product(unit)),
        ("matrix product (torch)", lambda: torch_matrix_products(unit)),
        ("disk read", lambda: disk_read(unit, buffer_bytes, user_data_folder())),
        ("loopback", lambda: loopback(unit, min(buffer_bytes, 16 << 20))),
        ("process start", lambda: process_start(unit)),
    ]
    if has_gpu:
        gpu_side = 8192 if seconds >= 10 else 2048
        steps.append(("GPUs", lambda: gpus(4 * unit, buffer_bytes, gpu_side)))
    if peer is not None:
        steps.insert(0, ("peer", lambda: peer_exchange(peer, token, 2 * unit, min(buffer_bytes, 16 << 20))))
    return steps + [(name, partial(measure_more, 2 * unit)) for name, measure_more in more.items()]


def _machine() -> dict[str, str]:
    """What was measured, when and with which versions."""
    packages = {}
    for package in ("numpy", "torch"):
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = "absent"
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processor": _processor(),
        "processors": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
        **packages,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
