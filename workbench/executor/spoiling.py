"""Doing to blocks what a planted fault asks for; the hashes must find it."""

from collections.abc import Iterable

from workbench.executor.blocks import Blocks
from workbench.executor.faults import Flip, Swap
from workbench.executor.held import Held


def spoil(blocks: Blocks, block: int, held: Held, faults: Iterable[Flip | Swap]) -> None:
    """Spoil a block that has just arrived, before anybody may use it or send it on.

    Parameters:
        blocks: the node's memory.
        block: the block that arrived.
        held: what the node held before.
        faults: what was planted at this node.
    """
    for fault in faults:
        match fault:
            case Flip(block=flipped) if flipped == block:
                blocks.payload(block)[0] ^= 1
            case Swap(block=first, other=second) if block in (first, second) and {first, second} <= {
                block,
                *held.blocks(),
            }:
                size = min(blocks.sizes[first], blocks.sizes[second])
                ours, theirs = blocks.payload(first)[:size], blocks.payload(second)[:size]
                ours[:], theirs[:] = theirs.copy(), ours.copy()
