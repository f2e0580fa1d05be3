"""Call a function from a student's notebook in a process of its own, with a time limit."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.teaching import answering
from workbench.teaching.judging import Said

TIME_LIMIT_S = 10.0
"""For all calls of one function, the start of its process included."""


def call_apart(source: str, name: str, cases: Sequence[tuple[Any, ...]], limit_s: float = TIME_LIMIT_S) -> list[Said]:
    """What a function gave in each case, or why it gave nothing.

    The process has an empty folder, no environment and no input, may write no file, and is ended with all that it
    started when its time is over. It is no prison: grade only what you would run.

    Parameters:
        source: a module with the function.
        name: of the function.
        cases: arguments, as JSON holds them.
        limit_s: for all cases together.
    """
    with tempfile.TemporaryDirectory(prefix="student-") as folder:
        path = Path(folder) / "student.py"
        path.write_text(source, encoding="utf-8")
        command = [sys.executable, "-I", "-B", answering.__file__, str(path), name]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder,
            env={"PATH": os.defpath, "HOME": folder, "OMP_NUM_THREADS": "1"}, start_new_session=True,
        )  # fmt: skip
        try:
            out, _ = process.communicate(json.dumps(cases).encode(), timeout=limit_s)
        except subprocess.TimeoutExpired:
            out = b""
            why = f"did not end within {limit_s:g} s"
        else:
            why = "ended its process"
        finally:
            _end(process)
    try:
        said = [(value, str(error)) for value, error in json.loads(out)]
    except (ValueError, TypeError):
        return [(None, why)] * len(cases)
    return said


def _end(process: subprocess.Popen) -> None:
    """End the process and all that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
