"""Tasks that show what the machine does without our machinery: a plain socket pair, a plain copy."""

import socket
import time
from statistics import median

import numpy as np

from workbench.executor.desk import Desk

PATIENCE_S = 30.0


def raw_receive(desk: Desk, block_bytes: int, blocks: int) -> float:
    """Receive blocks from one loopback connection; seconds from the word to start until the last byte."""
    buffer = np.zeros(block_bytes * blocks, dtype=np.uint8)
    buffer.fill(1)
    view = memoryview(buffer)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        desk.say(server.getsockname()[1])
        connection, _ = server.accept()
    with connection:
        connection.settimeout(PATIENCE_S)
        desk.say("connected")
        desk.hear()
        start_s, got = time.monotonic(), 0
        while got < len(view):
            if not (count := connection.recv_into(view[got : got + block_bytes])):
                raise ConnectionError("the sender closed the connection")
            got += count
        return time.monotonic() - start_s


def raw_send(desk: Desk, block_bytes: int, blocks: int, port: int) -> None:
    """Send blocks down one loopback connection when told to."""
    block = memoryview(np.ones(block_bytes * blocks, dtype=np.uint8))
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        desk.say("connected")
        desk.hear()
        for start in range(0, len(block), block_bytes):
            connection.sendall(block[start : start + block_bytes])


def copy_rate(desk: Desk, total_bytes: int) -> float:
    """Bytes per second of copying memory that has been touched before, median of five copies."""
    source, target = np.ones(total_bytes, dtype=np.uint8), np.zeros(total_bytes, dtype=np.uint8)
    target.fill(1)
    seconds = []
    for _ in range(5):
        start_s = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - start_s)
    return total_bytes / median(seconds)
