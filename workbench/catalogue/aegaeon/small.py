"""The small transformers of Aegaeon's real runs: three shapes of KV cache, as three of its models have."""

from workbench.executor.transformer import Shape

PROMPT, REQUESTS = 12, 2
"""Tokens of a prompt, and requests of a batch: few, so that a step is not much longer than a switch."""


def small_shapes() -> tuple[Shape, ...]:
    """Weights of 67, 72 and 82 MB, whose copies take about as long as a step; 8, 2 and 1 KV heads of width 64."""
    sizes = ((4, 8), (5, 2), (6, 1))
    return tuple(
        Shape(layers=layers, hidden=512, heads=8, kv_heads=kv_heads, ffn=1376, vocabulary=4096, longest=160)
        for layers, kv_heads in sizes
    )
