"""Read TOML files: each one parsed once per process, and every way to fail said in one sentence."""

import functools
import tomllib
from pathlib import Path
from typing import Any

from workbench.errors import InputError

LARGEST_FILE_BYTES = 1 << 20
"""A profile is a page of text; anything larger is not one."""


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file; callers must not change them, they are shared.

    Raises:
        InputError: no such file, a folder, too large, not text, or not TOML (with the line).
    """
    path = Path(path)
    status = stat_input(path, LARGEST_FILE_BYTES)
    return _parsed(path, status.st_mtime_ns, status.st_size)


def sources_in(tables: dict[str, Any], path: Path) -> dict[str, str]:
    """The [sources] table of a file: short names that stand for whole sources.

    Raises:
        InputError: it is no table of texts.
    """
    sources = tables.get("sources", {})
    if not isinstance(sources, dict) or not all(isinstance(text, str) for text in sources.values()):
        raise InputError("is no table of texts", 'write [sources] and NAME = "text"', file=path, field="sources")
    return sources


def stat_input(path: Path, largest_bytes: int):
    """The status of a file that is about to be read whole, refused unless it is a file of reasonable size."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", "give the path of a file", file=path) from None
    if not path.is_file():
        raise InputError("is not a file", "give the path of a file", file=path)
    if status.st_size > largest_bytes:
        raise InputError(
            f"has {status.st_size} bytes", f"a profile has at most {largest_bytes}: give another file", file=path
        )
    return status


@functools.lru_cache(maxsize=512)
def _parsed(path: Path, modified_ns: int, size: int) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", "save it as UTF-8", file=path) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", "mend that line", file=path) from None
    except RecursionError:
        raise InputError("is nested too deeply", "a profile has at most three levels of tables", file=path) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", "check its permissions", file=path) from None
