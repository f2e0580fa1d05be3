"""Messages between worker processes that may die one by one: a connection of its own for every pair and purpose.

A group of gloo ends as a whole when a member dies; here only the connections of the one that is gone end, and the
others go on. Connections are Unix sockets in a folder that only this user can enter; what travels is a header in JSON
and plain bytes.
"""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

WAITING = 64


class Mail:
    """What one node sends and receives.

    Parameters:
        folder: where the nodes meet.
        node: this node's number.
        deliver: called with the header of every message and its connection, from which it takes the payload, if there
            is one; every connection has a thread of its own.
    """

    def __init__(self, folder: str, node: int, deliver: Callable[[dict[str, Any], Connection], None]):
        self._folder, self._node, self._deliver = folder, node, deliver
        self._out: dict[tuple[int, str], tuple[Connection, threading.Lock]] = {}
        self._in: list[Connection] = []
        self._making, self._closed = threading.Lock(), False
        self._listener = Listener(_place(folder, node), family="AF_UNIX", backlog=WAITING)
        threading.Thread(target=self._accept, daemon=True).start()

    def send(self, node: int, purpose: str, header: dict[str, Any], payload: Any = None) -> None:
        """Send a message; raises `OSError` where the other is gone.

        Parameters:
            node: to whom.
            purpose: messages of one purpose arrive in order and never wait for those of another.
            header: what JSON can say.
            payload: contiguous bytes, or None.
        """
        connection, sending = self._to(node, purpose)
        with sending:
            connection.send_bytes(json.dumps(header).encode())
            if payload is not None:
                connection.send_bytes(payload)

    def close(self) -> None:
        """End all connections and their threads."""
        self._closed = True
        with suppress(OSError):
            Client(_place(self._folder, self._node), family="AF_UNIX").close()  # wakes the thread that accepts
        self._listener.close()
        for connection in [*self._in, *(connection for connection, _ in self._out.values())]:
            with suppress(OSError):
                connection.close()

    def _to(self, node: int, purpose: str) -> tuple[Connection, threading.Lock]:
        with self._making:
            if (node, purpose) not in self._out:
                made = Client(_place(self._folder, node), family="AF_UNIX")
                self._out[node, purpose] = made, threading.Lock()
            return self._out[node, purpose]

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            self._in.append(connection)
            threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, connection: Connection) -> None:
        with suppress(EOFError, OSError), connection:
            while True:
                self._deliver(json.loads(connection.recv_bytes()), connection)


def _place(folder: str, node: int) -> str:
    return str(Path(folder) / f"node-{node}")
