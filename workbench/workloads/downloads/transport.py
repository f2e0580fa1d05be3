"""One file over HTTPS, picked up where an earlier try stopped."""

import errno
import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import UserError, WorkbenchError

Progress = Callable[[int, int | None], object]

_CHUNK = 1 << 18
_TIMEOUT_S = 60
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def safe(url: str) -> bool:
    """Whether an address may be downloaded from: HTTPS, or this machine itself."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


class _OnlySafe(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, answer, code, message, headers, new_url):
        if not safe(new_url):
            raise WorkbenchError(
                f"{request.full_url} redirects to {new_url}, which is not HTTPS; nothing was downloaded."
            )
        return super().redirect_request(request, answer, code, message, headers, new_url)


def download(url: str, part: Path, expected_bytes: int | None, progress: Progress | None) -> None:
    """Fetch `url` into `part`, resuming what is already in it where the server allows.

    Whatever arrives stays in `part` when the connection breaks, so that another call goes on from there.

    Parameters:
        url: https, or http on this machine.
        part: the unfinished file.
        expected_bytes: known size; a server that announces or sends more is cut off.
        progress: called with bytes so far and in all (None where unknown).

    Raises:
        UserError: for an unsafe address or a full disk. WorkbenchError: when the server fails or the connection breaks.
    """
    if not safe(url):
        raise UserError(f"{url} is neither HTTPS nor on this machine; give another base_url.")
    have = part.stat().st_size if part.is_file() else 0
    if expected_bytes is not None and have > expected_bytes:
        part.unlink()
        have = 0
    if expected_bytes is not None and have == expected_bytes:
        return
    request = urllib.request.Request(url, headers={"User-Agent": "workbench", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.build_opener(_OnlySafe).open(request, timeout=_TIMEOUT_S) as answer:
            resumed = answer.status == 206 and _starts_at(answer, have)
            total = _total(answer, have if resumed else 0) or expected_bytes
            if expected_bytes is not None and total != expected_bytes:
                raise WorkbenchError(
                    f"{url} offers {total:,} bytes where the trace has {expected_bytes:,}; it is not the trace."
                )
            _pour(answer, part, have if resumed else 0, total, url, progress)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:
            part.unlink()
            return download(url, part, expected_bytes, progress)
        raise WorkbenchError(f"{url} answers {error.code} {error.reason}; nothing was downloaded.") from None
    except (http.client.HTTPException, OSError) as error:
        raise _broken(url, part, str(getattr(error, "reason", "") or error)) from None


def _starts_at(answer, offset: int) -> bool:
    return answer.headers.get("Content-Range", "").startswith(f"bytes {offset}-")


def _total(answer, offset: int) -> int | None:
    length = answer.headers.get("Content-Length")
    return offset + int(length) if length and length.isdigit() else None


def _pour(answer, part: Path, offset: int, total: int | None, url: str, progress: Progress | None) -> None:
    written = offset
    with _writing(part), part.open("ab" if offset else "wb") as sink:
        while chunk := _read(answer, url, part):
            written += len(chunk)
            if total is not None and written > total:
                raise WorkbenchError(f"{url} sends more than the {total:,} bytes it should; it is not the trace.")
            sink.write(chunk)
            sink.flush()
            if progress:
                progress(written, total)
    if total is not None and written < total:
        raise _broken(url, part, "the connection closed early")


def _broken(url: str, part: Path, reason: str) -> WorkbenchError:
    have = part.stat().st_size if part.is_file() else 0
    return WorkbenchError(
        f"The download from {url} broke off after {have:,} bytes ({reason}); run it again to go on from there."
    )


def _read(answer, url: str, part: Path) -> bytes:
    try:
        return answer.read(_CHUNK)
    except (http.client.HTTPException, OSError) as error:
        raise _broken(url, part, str(error)) from None


@contextmanager
def _writing(part: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"The disk of {part.parent} is full; free some space and run it again to go on.") from None
        raise UserError(f"{part} cannot be written ({error.strerror}); choose another folder.") from None
