"""How long this machine takes to start a process."""

import subprocess
import sys

from workbench.profiles.measure_timing import Measured, repeat, timed


def process_start(seconds: float) -> Measured:
    """From the call to the end of a Python interpreter that does nothing (no site packages)."""
    command = [sys.executable, "-I", "-S", "-c", "pass"]
    run = lambda: timed(lambda: subprocess.run(command, check=True, stdin=subprocess.DEVNULL))  # noqa: E731
    return repeat("process_start_s", "s", run, seconds, how="a bare Python interpreter, start to end")
