"""Predicted seconds of measured kernels: by fitted coefficients, and by achievable rates with a launch constant."""

import numpy as np
import polars as pl

from workbench.latency.kernel_coefficients import (
    DecodeAttentionCoefficients,
    GemmCoefficients,
    LaunchConstants,
    PrefillAttentionCoefficients,
)
from workbench.latency.kernels.parts import fill_decode_attention, fill_gemms, fill_prefill_attention
from workbench.latency.rates import NOT_OVERLAPPED, SPLIT_TOKENS, TILE_PAIRS, Rates
from workbench.profiles.dtypes import bits_of


def gemm_seconds(rows: pl.DataFrame, rates: Rates, fit: GemmCoefficients | LaunchConstants, dtype: str) -> np.ndarray:
    """Predicted seconds of matrix products (columns tokens, rows, columns).

    Parameters:
        rows: the shapes.
        rates: peak rates for coefficients, achievable ones for a launch constant.
        fit: either of the two.
        dtype: number format of the weights; activations in and out count 16 bits.
    """
    tokens, inner, outer = _floats(rows, "tokens", "rows", "columns")
    if isinstance(fit, LaunchConstants):
        compute, memory, exponent = 1.0, 1.0, 0.0
        launch = np.full(len(tokens), fit.gemm_s)
        compute_s = 2 * inner * outer * rates.slowdown(tokens) / rates.flops_per_s
    else:
        compute, memory, exponent = fit.compute_fraction, fit.memory_fraction, fit.exponent
        launch = fit.launch_s + inner * fit.launch_s_per_row + tokens * inner * fit.quantise_s_per_number
        compute_s = 2 * inner * outer / (compute * rates.flops_per_s)
    rate = memory * rates.memory_bytes_per_s
    activation_bits = bits_of(dtype) if bits_of(dtype) < 16 else 16.0
    seconds = np.empty(len(tokens))
    fill_gemms(
        tokens, compute_s, inner * outer * bits_of(dtype) / 8 / rate,
        (inner * activation_bits / 8 + outer * 2) / rate, launch, exponent, seconds,
    )  # fmt: skip
    return seconds


def decode_attention_seconds(
    rows: pl.DataFrame, rates: Rates, fit: DecodeAttentionCoefficients | LaunchConstants, cache_bytes: float, kv: str
) -> np.ndarray:
    """Predicted seconds of decode attention (columns requests, heads, kv_heads, context, head_dim)."""
    requests, kv_heads, context, width = _floats(rows, "requests", "kv_heads", "context", "head_dim")
    token_bytes = 2 * kv_heads * width * bits_of(kv) / 8
    if isinstance(fit, LaunchConstants):
        per_request, launch, split = np.zeros(len(requests)), fit.decode_attention_s, 0.0
        rate = np.full(len(requests), rates.decode_attention_bytes_per_s)
    else:
        per_request, launch, split = kv_heads * fit.s_per_kv_head, fit.launch_s, fit.split_s
        fits = requests * context * token_bytes < cache_bytes
        rate = np.where(fits, fit.cached_memory_fraction, fit.memory_fraction) * rates.memory_bytes_per_s
    seconds = np.empty(len(requests))
    fill_decode_attention(
        requests, requests * context, per_request, token_bytes / rate, launch, split, SPLIT_TOKENS, seconds
    )
    return seconds


def prefill_attention_seconds(
    rows: pl.DataFrame, rates: Rates, fit: PrefillAttentionCoefficients | LaunchConstants, cache_bytes: float
) -> np.ndarray:
    """Predicted seconds of prompt attention (columns requests, heads, kv_heads, prompt, cached, head_dim)."""
    requests, heads, kv_heads, prompt, cached, width = _floats(
        rows, "requests", "heads", "kv_heads", "prompt", "cached", "head_dim"
    )
    tokens, context = requests * prompt, requests * (prompt + cached)
    query_bytes, context_bytes = 4 * heads * width, 4 * kv_heads * width
    if isinstance(fit, LaunchConstants):
        launch, per_head, tile = fit.prefill_attention_s, 0.0, TILE_PAIRS
        flops_per_s = rates.prefill_attention_flops_per_s
        rate = np.full(len(tokens), rates.memory_bytes_per_s)
    else:
        launch, per_head, tile = fit.launch_s, fit.s_per_head, 0.0
        flops_per_s = fit.compute_fraction * rates.flops_per_s
        fits = tokens * query_bytes + context * context_bytes < cache_bytes
        rate = np.where(fits, fit.cached_memory_fraction, fit.memory_fraction) * rates.memory_bytes_per_s
    seconds, pair_s = np.empty(len(tokens)), 4 * heads * width / flops_per_s
    fill_prefill_attention(
        requests, tokens, tokens * (cached + (prompt + 1) / 2), context, heads * per_head, pair_s,
        query_bytes / rate + tile * pair_s, context_bytes / rate, launch, NOT_OVERLAPPED, seconds,
    )  # fmt: skip
    return seconds


def _floats(rows: pl.DataFrame, *names: str) -> list[np.ndarray]:
    return [rows[name].cast(pl.Float64).to_numpy() for name in names]
