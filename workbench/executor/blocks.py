"""The blocks of a message as one node holds them: one flat buffer, a small header behind each block."""

import hashlib
import mmap
import os
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

HEADER_BYTES = 16
PIECE_BYTES = 1 << 23


class Blocks:
    """Memory for all blocks of a message.

    A block travels with the 16 bytes behind it, which carry when its transfer started and how long its link takes, so
    that a receiver can hold the block until the link would have delivered it. Where the system allows it the memory is
    anonymous shared memory, which no crash can leave behind.

    Parameters:
        sizes: bytes of each block.
    """

    def __init__(self, sizes: tuple[int, ...]):
        import torch

        self.sizes = sizes
        spans = [-(-size // 64) * 64 + 64 for size in sizes]
        self._offsets = np.concatenate([[0], np.cumsum(spans)]).tolist()
        self.handle = os.memfd_create("workbench-blocks") if hasattr(os, "memfd_create") else -1
        if self.handle >= 0:
            os.ftruncate(self.handle, self._offsets[-1])
            weakref.finalize(self, os.close, self.handle)
        self._memory = mmap.mmap(self.handle, self._offsets[-1])
        self._bytes = np.frombuffer(self._memory, dtype=np.uint8)
        self._tensor = torch.frombuffer(self._memory, dtype=torch.uint8)

    @property
    def memory(self) -> np.ndarray:
        """All of it, uint8, blocks and what lies between them."""
        return self._bytes

    def clear(self) -> None:
        """Forget everything, and touch every page so that no page fault is timed."""
        self._bytes.fill(0)

    def payload(self, block: int) -> np.ndarray:
        """The bytes of a block, uint8 (size,)."""
        start = self._offsets[block]
        return self._bytes[start : start + self.sizes[block]]

    def header(self, block: int, memory: np.ndarray | None = None) -> np.ndarray:
        """A block's header, float64 (2,): start of the transfer and duration of the link, in seconds.

        Parameters:
            memory: another node's memory, as long as this one's, whose header is meant.
        """
        end = self._offsets[block + 1]
        return (self._bytes if memory is None else memory)[end - 64 : end - 64 + HEADER_BYTES].view(np.float64)

    def wire(self, block: int) -> Any:
        """What travels of a block, as a tensor: its bytes and its header."""
        return self._tensor[self._offsets[block] : self._offsets[block + 1] - 64 + HEADER_BYTES]

    def copy_from(self, memory: np.ndarray, block: int) -> None:
        """Copy a block's bytes out of another node's memory, uint8 as long as this node's."""
        start = self._offsets[block]
        np.copyto(self.payload(block), memory[start : start + self.sizes[block]])

    def fill(self, seed: int, block: int) -> None:
        """Give a block the bytes that belong to it."""
        payload, start = self.payload(block), 0
        for piece in _pieces(seed, block, self.sizes[block]):
            payload[start : start + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            start += len(piece)

    def digest(self, block: int) -> str:
        """SHA-256 of the block's bytes as they stand."""
        return hashlib.sha256(self.payload(block)).hexdigest()


def block_bytes(seed: int, block: int, size: int) -> bytes:
    """The bytes of a block: random, and the same wherever they are made from the same seed."""
    return b"".join(_pieces(seed, block, size))


def _pieces(seed: int, block: int, size: int) -> Iterator[bytes]:
    """The bytes of a block, drawn piece by piece: one draw of a large block would keep the signs of life waiting."""
    random = np.random.default_rng([seed, block])
    for start in range(0, size, PIECE_BYTES):
        yield random.bytes(min(PIECE_BYTES, size - start))


def map_memory(place: tuple[int, int]) -> np.ndarray:
    """Another worker's blocks as read-only bytes; `place` is its process number and the handle of its memory."""
    pid, handle = place
    with open(f"/proc/{pid}/fd/{handle}", "rb") as file:
        size = os.fstat(file.fileno()).st_size
        memory = mmap.mmap(file.fileno(), size, mmap.MAP_SHARED | mmap.MAP_POPULATE, mmap.PROT_READ)
    return np.frombuffer(memory, dtype=np.uint8)
