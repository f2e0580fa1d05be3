"""How long a call takes."""

import statistics
import time
from collections.abc import Callable


def median_s(call: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of a call, the median of some; a first one, which may compile, does not count."""
    call()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
