"""Memory of a real pool, all of it allocated once: weights by a moving pointer, KV caches in blocks of slabs."""

import math
from typing import Any

import numpy as np

from workbench.executor.transformer import KvCache, Shape
from workbench.executor.transformer.placing import pin
from workbench.pooling.policy import BumpAllocator, SlabPool, blocks_of
from workbench.pooling.real.asked import BLOCK_TOKENS

ALIGNMENT = 64
"""Bytes to which tensors are aligned, so that one lies alike in every copy: some routines for matrices choose their way
by the alignment of the memory."""


class WeightBuffer:
    """One buffer with room for two models: the one that runs, and the one that comes; they change places at a switch.

    The artifact moves prefetched weights to the front of its buffer. Here they are used where they lie: on a CPU that
    move would cost as much as the load.

    Parameters:
        model_bytes: of the largest model, its tensors aligned.
        device: "cpu" or a CUDA device; there copies run on a stream of their own.
    """

    def __init__(self, model_bytes: int, device: str):
        import torch

        self._memory = torch.zeros(2 * model_bytes, dtype=torch.uint8, device=device)
        self._halves = self._memory.split(model_bytes)
        self._pointers = [BumpAllocator(model_bytes, ALIGNMENT) for _ in self._halves]
        self._into = 0
        self._stream = torch.cuda.Stream(device) if device != "cpu" else None

    def fill(self, half: int) -> None:
        """From now on weights go into this half, whose content is dropped by setting its pointer back."""
        self._into = half
        self._pointers[half].reset()

    def place(self, values: np.ndarray) -> Any:
        """Copy a tensor behind the one before it; see `workbench.executor.transformer.placing.Places`."""
        import torch

        begin = self._pointers[self._into].allocate(values.nbytes)
        there = self._halves[self._into][begin : begin + values.nbytes].view(torch.float32).view(values.shape)
        if self._stream is None:
            return there.copy_(torch.from_numpy(values)), None
        with torch.cuda.stream(self._stream):
            there.copy_(torch.from_numpy(values), non_blocking=True)
            return there, self._stream.record_event()

    def ready(self, handle: Any) -> Any:
        """The tensor, once the computing stream waits for its copy."""
        there, copied = handle
        if copied is not None:
            import torch

            torch.cuda.current_stream(self._memory.device).wait_event(copied)
        return there


class HostModels:
    """Weights of all models in host memory, pinned where a GPU takes copies from it."""

    def __init__(self, weights: list[dict[str, np.ndarray]], device: str):
        self._weights = [self._together(model, device != "cpu") for model in weights]

    def of(self, model: int) -> dict[str, np.ndarray]:
        """Tensors of a model, views of one array."""
        return self._weights[model]

    @staticmethod
    def _together(tensors: dict[str, np.ndarray], pinned: bool) -> dict[str, np.ndarray]:
        memory, views = np.zeros(aligned_bytes(tensors), np.uint8), {}
        if pinned:
            pin(memory)
        pointer = BumpAllocator(memory.size, ALIGNMENT)
        for name, values in tensors.items():
            begin = pointer.allocate(values.nbytes)
            views[name] = memory[begin : begin + values.nbytes].view(np.float32).reshape(values.shape)
            views[name][...] = values
        return views


def aligned_bytes(tensors: dict[str, np.ndarray]) -> int:
    """Bytes of tensors one behind the other, each aligned."""
    return sum(-(-values.nbytes // ALIGNMENT) * ALIGNMENT for values in tensors.values())


class HostCaches:
    """KV caches of requests that do not decode now, in blocks of 16 tokens that lie in slabs of one region.

    A block holds all layers, keys and values, of one shape; shapes share the region slab by slab. Blocks that were read
    back stay on a move list until that copy is done.
    """

    def __init__(self, slab_bytes: int, slabs: int, device: str):
        import torch

        self.pool = SlabPool(slab_bytes, slabs)
        self._memory = torch.zeros(slab_bytes * slabs, dtype=torch.uint8, pin_memory=device != "cpu")
        self._at: dict[int, tuple[int, list[int]]] = {}
        self._transfers = 0
        self.peak: dict[int, tuple[int, int]] = {}

    def take(self, request: int, cache: "TurnCache") -> None:
        """Copy a request's cache here, block by block."""
        size, tokens = block_bytes(cache.shape), cache.length(0)
        blocks = self.pool.allocate(size, blocks_of(tokens, BLOCK_TOKENS))
        if blocks is None:
            raise MemoryError(f"the host's {self.pool.slabs} slabs have no room for {tokens} tokens more")
        self._at[request] = size, blocks
        for part, block in zip(cache.parts(), blocks, strict=True):
            self._block(block, cache.shape)[..., : part.shape[3], :].copy_(part)
        held = self.pool.held_bytes()
        if sum(slab for _, slab in held.values()) > sum(slab for _, slab in self.peak.values()):
            self.peak = held

    def give(self, request: int, cache: "TurnCache", tokens: int, version: str, lose: int = -1) -> None:
        """Copy a request's cache back into an empty one.

        Parameters:
            tokens: that it holds. version: whose keys and values they are.
            lose: number of a block that is not copied, for a planted fault.
        """
        size, blocks = self._at.pop(request)
        cache.fill(tokens, version)
        for number, (part, block) in enumerate(zip(cache.parts(), blocks, strict=True)):
            if number != lose:
                part.copy_(self._block(block, cache.shape)[..., : part.shape[3], :])
        self._transfers += 1
        self.pool.move(size, blocks, self._transfers)

    def forget(self, request: int) -> None:
        """Free the blocks of a request that is not finished."""
        size, blocks = self._at.pop(request)
        self.pool.free(size, blocks)

    def settle(self) -> None:
        """All copies are done: what is on move lists is free, and empty slabs belong to nobody."""
        self.pool.done(self._transfers)
        self.pool.reclaim()

    def _block(self, block: int, shape: Shape) -> Any:
        import torch

        size = block_bytes(shape)
        memory = self._memory[block * size : (block + 1) * size].view(torch.float32)
        return memory.view(shape.layers, 2, shape.kv_heads, BLOCK_TOKENS, shape.head_width)


def block_bytes(shape: Shape) -> int:
    """Bytes of a KV block of a model."""
    return BLOCK_TOKENS * shape.kv_bytes_per_token


class TurnCaches:
    """The KV caches of the batch that decodes, dense, in one arena: the small transformer reads contiguous keys."""

    def __init__(self, arena_bytes: int, device: str):
        import torch

        self._memory = torch.zeros(arena_bytes, dtype=torch.uint8, device=device)
        self._pointer = BumpAllocator(arena_bytes, ALIGNMENT)
        self._device = device

    def clear(self) -> None:
        """Drop all of them."""
        self._pointer.reset()

    def empty(self, shape: Shape) -> "TurnCache":
        """Room for one request."""
        import torch

        size = shape.layers, 2, shape.kv_heads, shape.longest, shape.head_width
        begin = self._pointer.allocate(4 * math.prod(size))
        rows = self._memory[begin : begin + 4 * math.prod(size)].view(torch.float32).view(size)
        return TurnCache(shape, rows, self._device)


def arena_bytes(shape: Shape, requests: int) -> int:
    """Bytes of a turn's caches."""
    return requests * -(-shape.longest * shape.kv_bytes_per_token // ALIGNMENT) * ALIGNMENT


class TurnCache(KvCache):
    """A cache whose rows lie in the arena: float32 (layers, 2, kv heads, longest, head width)."""

    def __init__(self, shape: Shape, rows: Any, device: str):
        super().__init__(shape, device=device)
        self._all = rows
        self._rows = dict(enumerate(rows))

    def parts(self) -> list[Any]:
        """Views of 16 tokens each, the last one of what is left."""
        tokens = self.length(0)
        return [self._all[..., at : min(at + BLOCK_TOKENS, tokens), :] for at in range(0, tokens, BLOCK_TOKENS)]

    def fill(self, tokens: int, version: str) -> None:
        """So many tokens of every layer are there, or are about to be copied."""
        self.belong_to(version)
        self._length = dict.fromkeys(range(self.shape.layers), tokens)
