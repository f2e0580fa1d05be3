"""The process in which a student's function is called: cases come in on stdin, what it gave goes out on stdout.

Run as `python -I -B answering.py MODULE NAME`, so it imports nothing of the workbench. What the function prints is
dropped.
"""

import contextlib
import importlib.util
import json
import os
import sys
from typing import Any

LARGEST_BYTES = 4 << 30
"""Address space that the function and what it imports may use."""

LONGEST = 100_000
"""Letters of an answer, all cases together."""


def main() -> None:
    """Call the function once a case."""
    path, name = sys.argv[1:]
    out = os.dup(1)
    silent = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(silent, number)
    cases = json.load(sys.stdin)
    os.dup2(silent, 0)
    _limit()
    said = json.dumps(_called(path, name, cases))
    os.write(out, (said if len(said) <= LONGEST else json.dumps([[None, "gave too much to read"]])).encode())


def plain(value: Any) -> Any:
    """A number of NumPy as Python's own; anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "size", 0) == 1 else value


def _called(path: str, name: str, cases: list) -> list:
    try:
        where = importlib.util.spec_from_file_location("student", path)
        module = importlib.util.module_from_spec(where)
        where.loader.exec_module(module)
        function = getattr(module, name)
    except BaseException as error:
        return [[None, f"the notebook's imports and functions fail: {_words(error)}"]] * len(cases)
    said = []
    for case in cases:
        try:
            value = plain(function(*case))
            fine = isinstance(value, bool | int | float)
            said.append([value if fine else None, "" if fine else f"it gave a {type(value).__name__}, and no number"])
        except BaseException as error:
            said.append([None, _words(error)])
    return said


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _limit() -> None:
    """No files, and no more memory than a function needs (where the system has such limits)."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (LARGEST_BYTES, LARGEST_BYTES))


if __name__ == "__main__":
    main()
