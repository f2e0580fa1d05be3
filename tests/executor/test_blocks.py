"""A node's memory: blocks and headers do not touch each other, bytes are known from the seed."""

import hashlib
import os

import numpy as np
import pytest

from workbench.executor.blocks import HEADER_BYTES, Blocks, block_bytes, map_memory

pytestmark = [pytest.mark.torch]
pytest.importorskip("torch", reason="torch is not installed: blocks are its tensors")


def test_bytes_depend_on_seed_and_block_only():
    assert block_bytes(7, 3, 100) == block_bytes(7, 3, 100)
    assert block_bytes(7, 3, 100) != block_bytes(7, 4, 100)
    assert block_bytes(7, 3, 100) != block_bytes(8, 3, 100)


@pytest.mark.parametrize("sizes", [(1, 1), (5, 64, 63), (1000, 999, 1)])
def test_blocks_and_headers_stay_apart(sizes):
    blocks = Blocks(sizes)
    for block in range(len(sizes)):
        blocks.fill(11, block)
        blocks.header(block)[:] = block + 0.5, -1.0
    for block, size in enumerate(sizes):
        assert blocks.payload(block).tobytes() == block_bytes(11, block, size)
        assert blocks.digest(block) == hashlib.sha256(block_bytes(11, block, size)).hexdigest()
        assert blocks.header(block).tolist() == [block + 0.5, -1.0]


def test_a_block_travels_with_its_header():
    blocks = Blocks((100, 7))
    blocks.fill(1, 1)
    blocks.header(1)[:] = 2.5, 0.25
    whole = blocks.wire(1).numpy()
    assert whole[:7].tobytes() == block_bytes(1, 1, 7)
    assert whole[-HEADER_BYTES:].view(np.float64).tolist() == [2.5, 0.25]


def test_clearing_forgets_everything():
    blocks = Blocks((50,))
    blocks.fill(1, 0)
    blocks.clear()
    assert not blocks.payload(0).any()


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="anonymous shared memory needs Linux")
def test_another_process_can_copy_out_of_shared_memory():
    ours, theirs = Blocks((300, 20)), Blocks((300, 20))
    for block in (0, 1):
        theirs.fill(5, block)
    memory = map_memory((os.getpid(), theirs.handle))
    ours.copy_from(memory, 1)
    assert ours.payload(1).tobytes() == block_bytes(5, 1, 20)
    assert not ours.payload(0).any()
    theirs.header(1)[:] = 1.5, 2.5
    assert ours.header(1, memory).tolist() == [1.5, 2.5]
    assert not memory.flags.writeable


def test_a_large_block_is_drawn_in_pieces_that_join_to_its_bytes():
    """One draw of hundreds of megabytes kept a worker silent for longer than its heartbeat."""
    from workbench.executor.blocks import PIECE_BYTES, Blocks, _pieces, block_bytes

    size = PIECE_BYTES * 2 + 12_345
    assert max(len(piece) for piece in _pieces(7, 0, size)) <= PIECE_BYTES
    blocks = Blocks((size,))
    blocks.fill(7, 0)
    assert blocks.payload(0).tobytes() == block_bytes(7, 0, size)
    assert len(block_bytes(7, 0, size)) == size
