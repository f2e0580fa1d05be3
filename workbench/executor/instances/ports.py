"""A network card's way out: paced, and shared by whoever sends at the same time, piece by piece in turns."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from workbench.executor.clock import sleep_until

AHEAD = 2
"""Pieces that a flow has posted at a time, as a card has the next one in its queue: a late wake-up then costs nothing,
and flows still take turns."""


class Port:
    """The way out of one card: it carries one piece at a time, in the order in which pieces are posted."""

    def __init__(self) -> None:
        self._free_s, self._posting = 0.0, threading.Lock()

    def post(self, seconds: float) -> float:
        """When a piece that is posted now is through, on `time.monotonic`.

        Parameters:
            seconds: that it takes the card alone.
        """
        with self._posting:
            self._free_s = max(self._free_s, time.monotonic()) + seconds
            return self._free_s


def paced(port: Port, pieces: Iterator[tuple[float, Callable[[float], None]]], check: Callable[[], None]) -> None:
    """Send pieces through a port, and wait until the last is through.

    Parameters:
        port: of the sender; other flows may use it at the same time.
        pieces: seconds that each takes the port alone, and what sends it when told the instant at which it is through;
            the next one is asked for when it may be posted, and may wait until there is one.
        check: raises when the flow has been called off.
    """
    under_way: deque[float] = deque()
    last_s = time.monotonic()
    for seconds, send in pieces:
        check()
        last_s = port.post(seconds)
        send(last_s)
        under_way.append(last_s)
        if len(under_way) == AHEAD:
            sleep_until(under_way.popleft(), check)
    sleep_until(last_s, check)
