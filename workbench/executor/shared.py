"""Links through shared memory, unpaced: a receiver copies a block out of its sender's memory as soon as it is there."""

import time
from collections.abc import Mapping

import numpy as np

from workbench.executor.blocks import Blocks
from workbench.executor.clock import sleep_until
from workbench.executor.faults import Flip, Swap
from workbench.executor.held import Held
from workbench.executor.links import Arrival, Receive, Send
from workbench.executor.spoiling import spoil

LOOK_S = 2e-5
THERE = 1.0


class SharedLinks:
    """The links of one node; senders do nothing but hold blocks.

    A block's header says that it is there. It is written after the bytes, and between the two the interpreter's lock is
    taken, so that no processor shows them in the other order.

    Parameters:
        blocks: the node's memory.
        held: what the node holds; filled as blocks arrive.
        sources: memory of each sender by rank.
        faults: what to do to blocks that arrive.
    """

    def __init__(
        self, blocks: Blocks, held: Held, sources: Mapping[int, np.ndarray], faults: tuple[Flip | Swap, ...]
    ) -> None:
        self._blocks, self._held, self._sources, self._faults = blocks, held, sources, faults

    def send(self, todo: tuple[Send, ...], start_s: float) -> None:
        """Let the others have what this node holds from the start; later blocks are offered as they arrive."""
        sleep_until(start_s, self._held.check)
        for block in self._held.blocks():
            self._blocks.header(block)[0] = THERE

    def receive(self, todo: tuple[Receive, ...], start_s: float, arrivals: list[Arrival]) -> None:
        """Fetch blocks in order."""
        sleep_until(start_s, self._held.check)
        for peer, block, index in todo:
            memory = self._sources[peer]
            while self._blocks.header(block, memory)[0] != THERE:
                self._held.check()
                time.sleep(LOOK_S)
            begin_s = time.monotonic()
            self._blocks.copy_from(memory, block)
            spoil(self._blocks, block, self._held, self._faults)
            arrivals.append(Arrival(index, begin_s, float("nan"), time.monotonic()))
            self._held.add(block, arrivals[-1].end_s)
            self._blocks.header(block)[0] = THERE
