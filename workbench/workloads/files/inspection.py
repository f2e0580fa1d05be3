"""One pass over a file's bytes: its hash, and whether it is text that a reader may touch at all."""

import codecs
import hashlib
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import InputError
from workbench.records import Record
from workbench.workloads.options import Limits

_CHUNK = 1 << 20
_FOREIGN = {
    b"PK\x03\x04": ("a zip archive", "unpack it and load the file inside"),
    b"\xfd7zXZ\x00": ("an xz archive", "unpack it with `xz -d` and load the result"),
    b"\x28\xb5\x2f\xfd": ("a zstd archive", "unpack it with `zstd -d` and load the result"),
    b"BZh": ("a bzip2 archive", "unpack it with `bzip2 -d` and load the result"),
    b"\xff\xfe": ("UTF-16 text", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "save it as UTF-8"),
    b"version https://git-lfs": (
        "a git-lfs pointer, not the trace itself",
        "fetch the real file with `git lfs pull` or `workbench data fetch`",
    ),
}


class FileFacts(Record):
    """What a pass over the bytes showed.

    Attributes:
        path: where the file is.
        bytes: its size on disk.
        sha256: of the bytes on disk, hexadecimal.
        magic: its first 64 bytes.
        bom: whether it starts with a UTF-8 byte-order mark.
        crlf: whether its first line ends with carriage return and line feed.
        final_newline: whether its last line is ended.
    """

    path: Path
    bytes: int
    sha256: str
    magic: bytes
    bom: bool = False
    crlf: bool = False
    final_newline: bool = True

    @property
    def is_parquet(self) -> bool:
        """Whether the file is Apache Parquet."""
        return self.magic.startswith(b"PAR1")

    @property
    def is_gzip(self) -> bool:
        """Whether the file is gzip-compressed."""
        return self.magic.startswith(b"\x1f\x8b")


def inspect(path: Path, limits: Limits) -> FileFacts:
    """Hash a file and check that it is a regular, not too large, UTF-8 text (or Parquet, or gzip).

    Raises:
        InputError: with the line of the file at fault (the header is line 1) and the remedy.
    """
    if not path.exists():
        raise InputError("there is no such file", "check the path", file=path)
    if not path.is_file():
        raise InputError("this is not a regular file", "give the path of a trace file", file=path)
    size = path.stat().st_size
    if size > limits.file_bytes:
        raise InputError(
            f"the file has {size:,} bytes, more than the limit of {limits.file_bytes:,}",
            "cut the file, or raise limits=Limits(file_bytes=...)",
            file=path,
        )
    digest, text = hashlib.sha256(), _TextCheck(path, limits)
    magic, last, crlf = b"", b"", False
    for chunk in _chunks(path):
        digest.update(chunk)
        if not magic:
            magic = chunk[:64]
            _refuse_foreign(path, magic)
            text.active = not magic.startswith((b"PAR1", b"\x1f\x8b"))
            text.one_document = magic.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
            crlf = b"\r\n" in chunk[: chunk.find(b"\n") + 1]
        text.feed(chunk)
        last = chunk[-1:]
    if not magic or (text.active and not text.seen_content):
        raise InputError("the file is empty", "give a file with a header line and at least one row", file=path)
    text.finish()
    return FileFacts(
        path=path,
        bytes=size,
        sha256=digest.hexdigest(),
        magic=magic,
        bom=magic.startswith(codecs.BOM_UTF8),
        crlf=crlf,
        final_newline=last == b"\n",
    )


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _refuse_foreign(path: Path, magic: bytes) -> None:
    for start, (what, remedy) in _FOREIGN.items():
        if magic.startswith(start):
            raise InputError(f"the file is {what}", remedy, file=path)


class _TextCheck:
    """Follows line length and encoding across chunks."""

    def __init__(self, path: Path, limits: Limits):
        self.path, self.limits, self.active, self.seen_content = path, limits, True, False
        self.one_document = False  # a JSON array may well be one long line
        self._lines, self._open_bytes = 0, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def feed(self, chunk: bytes) -> None:
        if not self.active:
            return
        self.seen_content = self.seen_content or bool(chunk.strip(b"\xef\xbb\xbf \t\r\n"))
        if b"\x00" in chunk:
            line = self._lines + chunk[: chunk.find(b"\x00")].count(b"\n") + 1
            self._refuse("the file holds zero bytes", "save it as UTF-8 text", line)
        if self._decoder.getstate()[0] or not chunk.isascii():
            try:
                self._decoder.decode(chunk)
            except UnicodeDecodeError as error:
                line = self._lines + error.object[: error.start].count(b"\n") + 1
                self._refuse("the text is not UTF-8", "convert it, for example `iconv -f latin1 -t utf-8`", line)
        first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
        self._open_bytes += len(chunk) if first < 0 else first
        self._check_length()
        if first >= 0:
            if self.limits.line_bytes < _CHUNK:
                self._check_inner(chunk[first + 1 : last + 1])
            self._open_bytes = len(chunk) - last - 1
            self._lines += chunk.count(b"\n")

    def finish(self) -> None:
        if not self.active:
            return
        self._check_length()
        if self._decoder.getstate()[0]:
            self._refuse(
                "the text is not UTF-8", "its last character is cut off: fetch the file again", self._lines + 1
            )

    def _check_length(self) -> None:
        if self._open_bytes > self.limits.line_bytes and not self.one_document:
            self._refuse_length(self._lines + 1)

    def _check_inner(self, lines: bytes) -> None:
        for offset, line in enumerate(lines.split(b"\n"), start=2):
            if len(line) > self.limits.line_bytes and not self.one_document:
                self._refuse_length(self._lines + offset)

    def _refuse_length(self, line: int) -> None:
        remedy = "this is not a line-by-line trace, or raise limits=Limits(line_bytes=...)"
        self._refuse(f"a line is longer than {self.limits.line_bytes:,} bytes", remedy, line)

    def _refuse(self, problem: str, remedy: str, line: int) -> None:
        raise InputError(problem, remedy, file=self.path, line=line)
