"""How much memory this process has held at most, whatever its parent held."""

import resource
from pathlib import Path


def peak_bytes() -> int:
    """The peak of resident memory.

    Linux keeps it for the program itself in `VmHWM`; `ru_maxrss` begins at the peak of the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes where there is no /proc
