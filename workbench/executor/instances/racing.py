"""The task of one node of a race on a link: flows that leave it when their time comes, and flows that reach it."""

import hashlib
import threading
import time
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from workbench.executor.blocks import block_bytes
from workbench.executor.clock import sleep_until
from workbench.executor.desk import Desk
from workbench.executor.instances.mail import Mail
from workbench.executor.instances.ports import Port, paced

PIECE_S = 0.01
"""How long a piece takes the link alone: a message of a transport, the grain in which flows take turns."""


class Transfer(NamedTuple):
    """Some bytes that leave a node.

    Attributes:
        number: of the transfer; its bytes are made from it.
        node: where it goes.
        start_s: when, seconds after the start.
        size: bytes.
        seconds: that it takes the link alone.
    """

    number: int
    node: int
    start_s: float
    size: int
    seconds: float


class RacePlan(NamedTuple):
    """What a node sends, and how many transfers reach it; `folder` is where the nodes meet."""

    folder: str
    sends: tuple[Transfer, ...]
    receives: int


class Reached(NamedTuple):
    """A transfer that is whole.

    Attributes:
        number: which.
        end_s: when its last piece was through, on `time.monotonic`.
        late_s: how much later that was than its link allows.
        digest: SHA-256 of what came.
    """

    number: int
    end_s: float
    late_s: float
    digest: str


class RaceReport(NamedTuple):
    """What reached a node, the digests of what it sent by number, and its processor seconds."""

    reached: list[Reached]
    sent: dict[int, str]
    busy_s: float


def race(desk: Desk, plan: RacePlan) -> RaceReport:
    """Send and receive; the parent says when time 0 is, and when all are through."""
    node = _Racer(desk, plan)
    try:
        desk.say("ready")
        start_s: float = desk.hear()
        busy_s = time.process_time()
        node.run(start_s)
        busy_s = time.process_time() - busy_s
        desk.say("through")
        desk.hear()
        return node.report(busy_s)
    finally:
        node.close()


class _Racer:
    def __init__(self, desk: Desk, plan: RacePlan):
        self._plan, self._port = plan, Port()
        self._all = threading.Condition()
        self._got: dict[int, bytearray] = {}
        self._reached: list[tuple[int, float, float]] = []
        self._content = {one.number: block_bytes(0, one.number, one.size) for one in plan.sends}
        self._mail = Mail(plan.folder, desk.number, self._deliver)

    def run(self, start_s: float) -> None:
        """Every transfer has a thread, so that those under way take turns at the port."""
        threads = [
            threading.Thread(target=self._send, args=(transfer, start_s), daemon=True) for transfer in self._plan.sends
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with self._all:
            self._all.wait_for(lambda: len(self._reached) == self._plan.receives)

    def report(self, busy_s: float) -> RaceReport:
        """Hashed when nobody's time is taken any more."""
        reached = [Reached(*one, _digest(self._got[one[0]])) for one in self._reached]
        return RaceReport(reached, {number: _digest(content) for number, content in self._content.items()}, busy_s)

    def close(self) -> None:
        """End the connections."""
        self._mail.close()

    def _send(self, transfer: Transfer, start_s: float) -> None:
        sleep_until(start_s + transfer.start_s, _go_on)
        count = max(1, min(transfer.size, round(transfer.seconds / PIECE_S)))
        edges = [transfer.size * piece // count for piece in range(count + 1)]
        content = memoryview(self._content[transfer.number])

        def piece(start: int, end: int, due_s: float) -> None:
            header = {"number": transfer.number, "last": end == transfer.size, "due_s": due_s}
            self._mail.send(transfer.node, f"transfer {transfer.number}", header, content[start:end])

        pieces = [
            (transfer.seconds * (end - start) / transfer.size, partial(piece, start, end))
            for start, end in pairwise(edges)
        ]
        paced(self._port, iter(pieces), _go_on)

    def _deliver(self, header: dict[str, Any], connection: Connection) -> None:
        piece = connection.recv_bytes()
        now_s = sleep_until(header["due_s"], _go_on)
        with self._all:
            self._got.setdefault(header["number"], bytearray()).extend(piece)
            if header["last"]:
                self._reached.append((header["number"], now_s, now_s - header["due_s"]))
                self._all.notify_all()


def _go_on() -> None:
    """A race is never called off from within; its parent ends the process."""


def _digest(content: bytes | bytearray) -> str:
    return hashlib.sha256(content).hexdigest()
