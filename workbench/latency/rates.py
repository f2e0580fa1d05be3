"""How fast an accelerator works through a step: peak rates for bounds, achievable ones for estimates."""

import numpy as np

from workbench.profiles.accelerator_record import Accelerator
from workbench.records import Quantity, Record, Source

FEW_TOKENS, MANY_TOKENS = 1024.0, 4096.0
"""Rows of the two sizes of matrix products whose rates the profiles give."""

TILE_PAIRS = 31.5
"""Keys beyond its own place that a query of a prompt is multiplied with: attention works in tiles of 64 keys, and the
tile on the diagonal is computed whole."""

SPLIT_TOKENS = 128.0
"""Context above which the measured decode kernels split a cache (their times step between 128 and 256 tokens)."""

NOT_OVERLAPPED = 1.0
"""Exponent with which attention over prompts adds arithmetic and traffic: softmax stands between its two products."""

ATTENTION_SHARE = 0.68
"""Causal attention's rate over that of large matrix products where only the latter is known."""

_ATTENTION_SOURCE = "0.68 of its large matrix products, the mean of A100 (0.60), H100 (0.69) and H200 (0.73)"


class Rates(Record):
    """Rates of one accelerator.

    Attributes:
        flops_per_s: matrix products of many rows.
        slowdown_at_few: how much slower those of 1,024 rows are.
        memory_bytes_per_s: reading weights and moving activations.
        decode_attention_bytes_per_s: reading the KV cache.
        prefill_attention_flops_per_s: causal attention over prompts.
        numbers: each of them with where it comes from.
    """

    flops_per_s: float
    slowdown_at_few: float = 1.0
    memory_bytes_per_s: float
    decode_attention_bytes_per_s: float
    prefill_attention_flops_per_s: float
    numbers: tuple[Source, ...] = ()

    def slowdown(self, tokens: np.ndarray) -> np.ndarray:
        """How much slower products of so many rows are, efficiency interpolated linearly between the two sizes."""
        return 1.0 / np.interp(tokens, [FEW_TOKENS, MANY_TOKENS], [1.0 / self.slowdown_at_few, 1.0])


def achievable_rates(accelerator: Accelerator) -> Rates:
    """What software gets, from the accelerator's profile; the nominal rate stands in where nobody measured."""
    flops, memory = accelerator.speed("flops_per_s"), accelerator.speed("memory_bytes_per_s")
    few = accelerator.achievable.flops_per_s_1024_tokens or flops
    cache = accelerator.achievable.decode_attention_bytes_per_s or memory
    attention = accelerator.achievable.prefill_attention_flops_per_s or Quantity(
        value=float(flops) * ATTENTION_SHARE, unit="flop/s", status="inferred", source=_ATTENTION_SOURCE
    )
    return Rates(
        flops_per_s=float(flops),
        slowdown_at_few=float(flops) / float(few),
        memory_bytes_per_s=float(memory),
        decode_attention_bytes_per_s=float(cache),
        prefill_attention_flops_per_s=float(attention),
        numbers=(
            number("matrix products", flops),
            number("matrix products of 1,024 tokens", few),
            number("reading weights", memory),
            number("reading the KV cache", cache),
            number("attention over prompts", attention),
        ),
    )


def peak_rates(accelerator: Accelerator) -> Rates:
    """What the data sheet says, the same rate for every kind of kernel."""
    flops, memory = accelerator.speed("flops_per_s", "nominal"), accelerator.speed("memory_bytes_per_s", "nominal")
    return Rates(
        flops_per_s=float(flops),
        memory_bytes_per_s=float(memory),
        decode_attention_bytes_per_s=float(memory),
        prefill_attention_flops_per_s=float(flops),
        numbers=(number("peak arithmetic", flops), number("peak memory rate", memory)),
    )


def number(what: str, value: Quantity) -> Source:
    """A quantity as a row of a table of sources."""
    return Source(quantity=what, value=f"{value.value:.6g}", unit=value.unit, status=value.status, source=value.source)
