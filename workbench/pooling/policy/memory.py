"""What fits on an instance: KV blocks beside weights, and when the next model may be loaded beside the present one."""

from workbench.jit import lean_kernel

AHEAD_TO_JOIN, AHEAD_TO_RUN = 64, 16
"""Tokens that a request is thought to be longer when it is to join a batch, and when the batch is to make a step (the
artifact's decode_scheduler.py)."""


@lean_kernel
def blocks_of(tokens, block_tokens):
    """KV blocks that hold so many tokens."""
    return (tokens + block_tokens - 1) // block_tokens


@lean_kernel
def capacity_of(memory_bytes, weight_bytes, prefetched_bytes, block_bytes):
    """KV blocks of an instance beside the weights of its model, and of one that is prefetched; 0 where none fit."""
    left = memory_bytes - weight_bytes - prefetched_bytes
    return max(0, int(left // block_bytes))


@lean_kernel
def may_prefetch(memory_bytes, weight_bytes, next_bytes, block_bytes, least_blocks):
    """Whether enough KV blocks are left to a model while the next one is loaded beside it.

    Source: Aegaeon's artifact, worker.py: the prefetch is dropped below max(1024, longest request / 16) blocks.
    """
    return capacity_of(memory_bytes, weight_bytes, next_bytes, block_bytes) >= least_blocks
