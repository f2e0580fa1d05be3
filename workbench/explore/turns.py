"""Real runs one at a time: two of them on one machine would measure each other."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workbench.catalogue.context import Stopped

_TURN = threading.Lock()
_PATIENCE_S = 0.05
"""How soon a waiting run notices its Stop."""


@contextmanager
def real_turn(stop: threading.Event, tell: Callable[[str], object]) -> Iterator[None]:
    """Hold the machine for one real run; wait, and say so, while another explorer's run goes on.

    Raises:
        Stopped: `stop` was set before it was this run's turn.
    """
    if not _TURN.acquire(blocking=False):
        tell("waiting for the other real run")
        while not _TURN.acquire(timeout=_PATIENCE_S):
            if stop.is_set():
                raise Stopped("Stopped before it was begun.")
    try:
        if stop.is_set():
            raise Stopped("Stopped before it was begun.")
        yield
    finally:
        _TURN.release()
