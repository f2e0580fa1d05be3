"""How fast this machine reads a file that is not in the page cache."""

import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from workbench.errors import WorkbenchError
from workbench.profiles.measure_timing import Measured, repeat, timed

_PIECE_BYTES = 4 << 20


def disk_read(seconds: float, file_bytes: int, folder: Path) -> Measured:
    """How fast a file is read front to back from the disk that holds `folder`.

    The page cache is bypassed (O_DIRECT) where the file system allows it, else dropped before each run
    (posix_fadvise), else left alone; `how` says which. A disk of a virtual machine may be cached by its host still.

    Parameters:
        seconds: time budget.
        file_bytes: size of the file, a temporary one; rounded to whole pieces of 4 MiB.
        folder: where it lies; created.

    Raises:
        WorkbenchError: no room for the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file_bytes = max(1, file_bytes // _PIECE_BYTES) * _PIECE_BYTES
    free = shutil.disk_usage(folder).free
    if free < 2 * file_bytes:
        raise WorkbenchError(f"The disk of {folder} has {free} bytes free, too few to measure it with {file_bytes}.")
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".measure-") as file:
        file_bytes = _fill(file, file_bytes, seconds / 2)
        read, how = _reader(Path(file.name))
        return repeat(
            "disk_read_bytes_per_s", "bytes/s", read, seconds / 2, file_bytes, f"{file_bytes >> 20} MiB, {how}"
        )


def _fill(file: IO[bytes], file_bytes: int, seconds: float) -> int:
    """Write the file through to the disk, a smaller one where the disk is too slow for the time; gives its size."""
    piece = os.urandom(_PIECE_BYTES)  # random bytes: some disks and file systems compress
    start, count = time.perf_counter(), 0
    while count < file_bytes // _PIECE_BYTES and (count == 0 or time.perf_counter() - start < seconds):
        file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        count += 1
    return count * _PIECE_BYTES


def _reader(path: Path) -> tuple[Callable[[], float], str]:
    direct = getattr(os, "O_DIRECT", 0)
    if direct:
        with suppress(OSError):
            _read_all(path, direct)
            return lambda: timed(lambda: _read_all(path, direct)), "O_DIRECT, the page cache bypassed"
    if hasattr(os, "posix_fadvise"):
        return lambda: _read_uncached(path), "the page cache dropped before each run (posix_fadvise)"
    return lambda: timed(lambda: _read_all(path, 0)), "the page cache may have helped: this system cannot drop it"


def _read_uncached(path: Path) -> float:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return timed(lambda: _read_all(path, 0))


def _read_all(path: Path, flags: int) -> int:
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        # An anonymous mapping lies on a page boundary, which O_DIRECT asks of its buffer.
        with mmap.mmap(-1, _PIECE_BYTES) as piece, open(descriptor, "rb", buffering=0, closefd=False) as file:
            total = 0
            while count := file.readinto(piece):
                total += count
            return total
    finally:
        os.close(descriptor)
