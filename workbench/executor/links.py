"""Paced point-to-point links: one sending and one receiving thread a node, on one gloo group.

The model is the dataflow model of the one-port machine: a transfer starts when the sender's port is free, the
receiver's port is free and the block is held, and takes the time of its link. Bytes are copied at once, as fast as the
machine can, and the receiver *holds* a block until the link would have delivered it; a receiver that let a block go
early would let its chain run faster than the model. A sender hands over at most one block ahead of its start, as a
network card takes the next block from its queue when it is free, without waiting for the processor to wake. Each
receiver tells its next sender in advance when its port will be free.
"""

import time
from collections import deque
from typing import Any, NamedTuple

from workbench.executor.blocks import Blocks
from workbench.executor.clock import Clock, sleep_until
from workbench.executor.faults import Flip, Swap
from workbench.executor.held import Held
from workbench.executor.spoiling import spoil

POSTED_AHEAD = 64
"""How many receptions a node has announced to its senders beyond the present one; announced late, they cost a wait."""

UNDER_WAY = 32
"""How many blocks a sender may have handed over that are not yet copied. With 3, unpaced blocks of 1 MiB reached half
of a plain socket pair; with 32, seven tenths. A paced sender is held back by its links long before."""


class Send(NamedTuple):
    """One transfer as its sender sees it; `index` is its place in the schedule, the same on both sides."""

    peer: int
    block: int
    index: int
    duration_s: float


class Receive(NamedTuple):
    """One transfer as its receiver sees it."""

    peer: int
    block: int
    index: int


class Arrival(NamedTuple):
    """One transfer as it happened, instants on `time.monotonic`; unpaced transfers have no deadline (NaN)."""

    index: int
    start_s: float
    deadline_s: float
    end_s: float


class Links:
    """The links of one node during one run.

    Parameters:
        group: the gloo group.
        blocks: the node's memory.
        held: what the node holds; filled as blocks arrive.
        clock: see `workbench.executor.clock.Clock`.
        faults: what to do to blocks that arrive.
    """

    def __init__(self, group: Any, blocks: Blocks, held: Held, clock: Clock, faults: tuple[Flip | Swap, ...]):
        self._group, self._blocks, self._held = group, blocks, held
        self._paced, self._stamped = clock != "unpaced", clock == "stamped"
        self._faults = faults
        self._told: list[tuple[Any, Any]] = []

    def send(self, todo: tuple[Send, ...], start_s: float) -> None:
        """Send blocks in order; the work of one thread."""
        import torch

        free_s, port = start_s, torch.empty(1, dtype=torch.float64)
        under_way: deque[tuple[int, Any]] = deque()
        sleep_until(start_s, self._held.check)
        for peer, block, index, duration_s in todo:
            since_s = self._held.wait(block)
            begin_s = since_s if self._stamped else time.monotonic()
            if self._paced:
                self._group.recv([port], peer, 2 * index + 1).wait()
                begin_s = max(begin_s, free_s, float(port))
            while len(under_way) >= UNDER_WAY or block in (sent for sent, _ in under_way):
                under_way.popleft()[1].wait()
            self._blocks.header(block)[:] = begin_s, duration_s
            under_way.append((block, self._group.send([self._blocks.wire(block)], peer, 2 * index)))
            free_s = begin_s + duration_s
            if self._paced:
                now_s = sleep_until(begin_s, self._held.check)
                free_s = free_s if self._stamped else max(free_s, now_s)
        for _, work in under_way:
            work.wait()

    def receive(self, todo: tuple[Receive, ...], start_s: float, arrivals: list[Arrival]) -> None:
        """Receive blocks in order and hold each until its link would have delivered it; the work of one thread."""
        posted = [self._post(transfer) for transfer in todo[:POSTED_AHEAD]]
        self._tell(todo[:1], start_s)
        sleep_until(start_s, self._held.check)
        for place, (_, block, index) in enumerate(todo):
            posted[place].wait()
            self._held.check()
            begin_s, duration_s = self._blocks.header(block).tolist()
            deadline_s = begin_s + duration_s if self._paced else float("nan")
            now_s = time.monotonic()
            if self._paced:
                self._tell(todo[place + 1 : place + 2], deadline_s if self._stamped else max(deadline_s, now_s))
                now_s = sleep_until(deadline_s, self._held.check)
            spoil(self._blocks, block, self._held, self._faults)
            arrivals.append(Arrival(index, begin_s, deadline_s, now_s))
            self._held.add(block, deadline_s if self._stamped else now_s)
            posted += [self._post(transfer) for transfer in todo[place + POSTED_AHEAD : place + POSTED_AHEAD + 1]]

    def _post(self, transfer: Receive) -> Any:
        return self._group.recv([self._blocks.wire(transfer.block)], transfer.peer, 2 * transfer.index)

    def _tell(self, following: tuple[Receive, ...], free_s: float) -> None:
        """Let the sender of the next transfer know when this node's port will be free for it."""
        import torch

        for transfer in following if self._paced else ():
            port = torch.tensor([free_s], dtype=torch.float64)
            self._told.append((port, self._group.send([port], transfer.peer, 2 * transfer.index + 1)))
