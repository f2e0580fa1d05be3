"""How fast two hosts exchange bytes over TCP: one listens, the other measures.

The listener is started by hand on a named address (loopback unless told otherwise), makes a token for this one session,
and ends after it. Nothing but byte counts and filler travels: a request is one letter and an 8-byte count.
"""

import contextlib
import hmac
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable

from workbench.errors import InputError, UserError, WorkbenchError
from workbench.profiles.measure_timing import Measured, repeat, timed

LARGEST_BYTES = 1 << 30
_REQUEST = struct.Struct("!cQ")
_PIECE_BYTES = 1 << 20
_TOKEN_BYTES = 32
_PATIENCE_S = 10.0
_MOST_WRONG = 3


def listen_for_peer(
    address: str = "127.0.0.1",
    port: int = 0,
    seconds: float = 600.0,
    ready: Callable[[str, int, str], None] | None = None,
) -> int:
    """Be the far end of one `measure(peer=...)`, then return.

    Parameters:
        address: the local address to listen on; name that of the network card to be measured.
        port: TCP port, 0 for a free one.
        seconds: how long to wait for the peer, and for its session to end.
        ready: told address, port and the one-time token once listening (the command line prints them).

    Returns:
        Bytes of filler exchanged.

    Raises:
        UserError: the address cannot be listened on. WorkbenchError: nobody came, or three wrong tokens.
    """
    token = secrets.token_hex(_TOKEN_BYTES // 2)
    deadline = time.monotonic() + seconds
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.create_server((address, port), family=family, backlog=1)
    except OSError as error:
        raise UserError(f"Cannot listen on {address} port {port} ({error.strerror}); name another one.") from None
    with server:
        if ready is not None:
            ready(address, server.getsockname()[1], token)
        for _ in range(_MOST_WRONG):
            connection = _accept(server, deadline)
            with connection:
                if _greeted(connection, token):
                    connection.settimeout(max(0.1, deadline - time.monotonic()))
                    return _serve(connection)
    raise WorkbenchError(f"{_MOST_WRONG} peers came with a wrong token; listen again for a new one.")


def peer_exchange(peer: str, token: str, seconds: float, message_bytes: int) -> list[Measured]:
    """Send to and receive from a listener on another host, and bounce single bytes.

    Parameters:
        peer: "HOST:PORT" as the listener printed it.
        token: the listener's one-time token.
        seconds: time budget.
        message_bytes: bytes of one message.

    Raises:
        InputError, UserError: no such address, nobody listening, a wrong token.
    """
    with contextlib.closing(_connect(peer, token)) as connection:
        return exchange(connection, seconds, message_bytes, ("peer_send", "peer_receive", "peer"), f"TCP with {peer}")


def exchange(
    connection: socket.socket, seconds: float, message_bytes: int, names: tuple[str, str, str], how: str
) -> list[Measured]:
    """The measuring side of one session over a connected socket: send, receive, and one-way latency rows."""
    message_bytes = min(message_bytes, LARGEST_BYTES)
    buffer = memoryview(bytearray(_PIECE_BYTES))

    def send() -> None:
        connection.sendall(_REQUEST.pack(b"s", message_bytes))
        _send_filler(connection, message_bytes, buffer)
        _receive(connection, 1, buffer)

    def receive() -> None:
        connection.sendall(_REQUEST.pack(b"r", message_bytes))
        _receive(connection, message_bytes, buffer)

    def bounce() -> None:
        connection.sendall(_REQUEST.pack(b"s", 0))
        _receive(connection, 1, buffer)

    size = f"{how}, messages of {message_bytes >> 10} KiB"
    share = seconds / 3
    rows = [
        repeat(f"{names[0]}_bytes_per_s", "bytes/s", lambda: timed(send), share, message_bytes, size),
        repeat(f"{names[1]}_bytes_per_s", "bytes/s", lambda: timed(receive), share, message_bytes, size),
        repeat(f"{names[2]}_latency_s", "s", lambda: timed(bounce) / 2, share, how=f"{how}, half a round trip"),
    ]
    connection.sendall(_REQUEST.pack(b"q", 0))
    return rows


def loopback(seconds: float, message_bytes: int) -> list[Measured]:
    """How fast two threads of this process exchange bytes over TCP on the loopback address."""
    near, far = _loopback_pair()
    served = threading.Thread(target=_serve_quietly, args=(far,), name="measure-loopback", daemon=True)
    served.start()
    with near:
        rows = exchange(
            near, seconds, message_bytes, ("loopback", "loopback_receive", "loopback"), "TCP on 127.0.0.1, two threads"
        )
    served.join(_PATIENCE_S)
    return rows


def _loopback_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
        near = socket.create_connection(server.getsockname(), _PATIENCE_S)
        far, _ = server.accept()
    for end in (near, far):
        end.settimeout(60.0)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return near, far


def _accept(server: socket.socket, deadline: float) -> socket.socket:
    server.settimeout(max(0.01, deadline - time.monotonic()))
    try:
        connection, _ = server.accept()
    except TimeoutError:
        raise WorkbenchError(
            "No peer came in time; listen again, and run `workbench measure --peer` meanwhile."
        ) from None
    connection.settimeout(_PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _greeted(connection: socket.socket, token: str) -> bool:
    buffer = memoryview(bytearray(_TOKEN_BYTES))
    try:
        _receive(connection, _TOKEN_BYTES, buffer)
        right = hmac.compare_digest(bytes(buffer), token.encode())
        connection.sendall(b"y" if right else b"n")
    except OSError:
        return False
    return right


def _connect(peer: str, token: str) -> socket.socket:
    host, _, port = peer.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"the peer {peer!r} is no HOST:PORT", "give the address the listener printed")
    if len(token.encode()) != _TOKEN_BYTES:
        raise InputError("the token has the wrong length", "give the token the listener printed")
    try:
        connection = socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S)
    except OSError as error:
        raise UserError(f"Nobody answers at {peer} ({error.strerror or error}); start the listener there.") from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answer = memoryview(bytearray(1))
    try:
        connection.sendall(token.encode())
        _receive(connection, 1, answer)
    except OSError as error:
        connection.close()
        raise UserError(f"{peer} hung up ({error}); start the listener there again.") from None
    if bytes(answer) != b"y":
        connection.close()
        raise UserError(f"{peer} did not accept the token; give the one its listener printed.")
    connection.settimeout(60.0)
    return connection


def _serve(connection: socket.socket) -> int:
    buffer = memoryview(bytearray(_PIECE_BYTES))
    exchanged = 0
    while True:
        try:
            _receive(connection, _REQUEST.size, buffer)
            kind, count = _REQUEST.unpack(buffer[: _REQUEST.size])
            if kind == b"q" or kind not in (b"s", b"r") or count > LARGEST_BYTES:
                return exchanged
            if kind == b"s":
                _receive(connection, count, buffer)
                connection.sendall(b"a")
            else:
                _send_filler(connection, count, buffer)
        except (ConnectionError, TimeoutError):
            return exchanged
        exchanged += count


def _serve_quietly(connection: socket.socket) -> None:
    with connection:
        _serve(connection)


def _send_filler(connection: socket.socket, count: int, buffer: memoryview) -> None:
    while count:
        piece = min(count, len(buffer))
        connection.sendall(buffer[:piece])
        count -= piece


def _receive(connection: socket.socket, count: int, buffer: memoryview) -> None:
    """Receive `count` bytes; they stay in the buffer where they fit, else each piece overwrites the one before."""
    at = 0
    keep = count <= len(buffer)
    while count:
        start = at if keep else 0
        got = connection.recv_into(buffer[start : start + min(count, len(buffer) - start)])
        if got == 0:
            raise ConnectionError("the other side closed the connection")
        at += got
        count -= got
