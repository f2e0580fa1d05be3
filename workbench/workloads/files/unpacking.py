"""Gzip files, unpacked beside nothing and never beyond a limit."""

import gzip
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import InputError
from workbench.workloads.files.inspection import FileFacts, inspect
from workbench.workloads.options import Limits

_CHUNK = 1 << 20


@contextmanager
def readable(path: Path, limits: Limits) -> Iterator[tuple[FileFacts, FileFacts]]:
    """Give the facts of a file as it lies on disk and of the text to read; for gzip the text is a temporary file.

    Raises:
        InputError: when the file is damaged, or unpacks to more than `limits.file_bytes`.
    """
    packed = inspect(path, limits)
    if not packed.is_gzip:
        yield packed, packed
        return
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        text = Path(folder) / path.name.removesuffix(".gz")
        _unpack(path, text, limits)
        try:
            inner = inspect(text, limits)
        except InputError as error:
            raise InputError(error.problem, error.remedy, file=path) from None
        if inner.is_gzip:
            raise InputError("the file is gzip inside gzip", "unpack it once and load the result", file=path)
        yield packed, inner


def _unpack(path: Path, target: Path, limits: Limits) -> None:
    written = 0
    try:
        with gzip.open(path, "rb") as source, target.open("wb") as sink:
            while chunk := source.read(_CHUNK):
                written += len(chunk)
                if written > limits.file_bytes:
                    raise InputError(
                        f"the file unpacks to more than the limit of {limits.file_bytes:,} bytes",
                        "unpack it yourself if you trust it, or raise limits=Limits(file_bytes=...)",
                        file=path,
                    )
                sink.write(chunk)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError("the gzip data is damaged or cut off", "fetch the file again", file=path) from None
