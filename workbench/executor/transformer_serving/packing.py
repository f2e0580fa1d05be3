"""How a block reaches a node's memory: whole or in pieces, into memory made ahead or on arrival, directly or not.

The receiver asks for every message and takes one at a time, as one-sided reads do; so each message pays its overhead.
Links are not paced: what is timed is the machine's own path.
"""

import mmap
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from workbench.executor.desk import Desk
from workbench.executor.group import break_up, open_group

READY = "ready"
ASK, SEND = 1, 2
"""Tags of the receiver's requests and of the sender's messages."""


class Way(NamedTuple):
    """One way to receive a model.

    Attributes:
        blocks, block_bytes: what is received.
        message_bytes: the size of one message; a block is received in so many pieces as that takes.
        ahead: whether memory is made, and touched, before the first message; else piece by piece as they arrive.
        direct: whether messages land where they are to stay; else in a buffer, from which they are copied.
    """

    blocks: int
    block_bytes: int
    message_bytes: int
    ahead: bool = True
    direct: bool = True

    @property
    def messages(self) -> int:
        """How many messages there are in all."""
        return self.blocks * -(-self.block_bytes // self.message_bytes)


def serve_blocks(desk: Desk, rendezvous: str, ways: Sequence[Way], timeout_s: float) -> None:
    """The sender's task: answer every request of every way."""
    import torch

    group = open_group(rendezvous, 0, 2, timeout_s)
    asked, source = torch.empty(1, dtype=torch.int64), torch.ones(_largest(ways), dtype=torch.uint8)
    desk.say(READY)
    desk.hear()
    for way in ways:
        for _ in range(way.messages):
            group.recv([asked], 1, ASK).wait()
            group.send([source[: int(asked)]], 1, SEND).wait()
    desk.hear()  # until the receiver has everything
    break_up(group)


def receive_blocks(desk: Desk, rendezvous: str, ways: Sequence[Way], timeout_s: float) -> list[list[float]]:
    """The receiver's task: for each way the seconds of every message, from its request to its bytes in their place."""
    group = open_group(rendezvous, 1, 2, timeout_s)
    buffer = _touched(_largest(ways))
    desk.say(READY)
    desk.hear()
    took_s = [_received(group, way, buffer) for way in ways]
    desk.say(took_s)
    desk.hear()
    break_up(group)
    return took_s


def _received(group: Any, way: Way, buffer: Any) -> list[float]:
    import torch

    pieces = [min(way.message_bytes, way.block_bytes - start) for start in range(0, way.block_bytes, way.message_bytes)]
    made = [[_touched(size) for size in pieces] for _ in range(way.blocks if way.ahead else 0)]
    asked, kept = torch.empty(1, dtype=torch.int64), []
    took_s: list[float] = []
    begun_s = time.perf_counter()
    for block in range(way.blocks):
        for place, size in enumerate(pieces):
            target = made[block][place] if way.ahead else _fresh(size)
            landing = target if way.direct else buffer[:size]
            asked[0] = size
            group.send([asked], 0, ASK).wait()
            group.recv([landing], 0, SEND).wait()
            if not way.direct:
                target.copy_(landing)
            kept.append(target)
            took_s.append(time.perf_counter() - begun_s)
            begun_s += took_s[-1]
    if sum(int(one[0]) + int(one[-1]) for one in kept) != 2 * len(kept):
        raise RuntimeError("a message did not arrive where it should")
    return took_s


def _touched(size: int) -> Any:
    """Memory whose every page is there; zeros would come from the system untouched."""
    import torch

    return torch.empty(size, dtype=torch.uint8).fill_(2)


def _fresh(size: int) -> Any:
    """Memory straight from the system; the library's own would be what an earlier turn left, with its pages there."""
    import torch

    return torch.frombuffer(mmap.mmap(-1, size), dtype=torch.uint8)


def _largest(ways: Sequence[Way]) -> int:
    return max(min(way.message_bytes, way.block_bytes) for way in ways)
