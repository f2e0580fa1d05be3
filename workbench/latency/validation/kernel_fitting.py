"""Fit the kernel coefficients to the half of each sweep that is not held out."""

import numpy as np
import polars as pl

from workbench.latency.kernel_coefficients import (
    DecodeAttentionCoefficients,
    GemmCoefficients,
    LaunchConstants,
    PrefillAttentionCoefficients,
)
from workbench.latency.rates import Rates, achievable_rates, peak_rates
from workbench.latency.traits import arithmetic_speedup, cache_bytes
from workbench.latency.validation.halves import relative_fit, thinned
from workbench.latency.validation.kernel_models import (
    decode_attention_seconds,
    gemm_seconds,
    prefill_attention_seconds,
)
from workbench.latency.validation.sweeps import decode_attention_rows, gemm_rows, prefill_attention_rows
from workbench.profiles import accelerator


def fit_gemm(gpu: str, rows: pl.DataFrame, dtype: str, about: dict[str, str]) -> GemmCoefficients:
    """Coefficients of matrix products; `rows` has tokens, rows, columns, seconds and held_out."""
    rates, rows = with_speedup(peak_rates(accelerator(gpu)), gpu, dtype), _fitted_half(rows)

    def made(x: np.ndarray) -> GemmCoefficients:
        return GemmCoefficients(
            dtype=dtype, compute_fraction=min(x[0], 1.0), memory_fraction=min(x[1], 1.0),
            launch_s=x[2], launch_s_per_row=x[3], exponent=1.0 + x[4],
            quantise_s_per_number=x[5] if len(x) > 5 else 0.0, **about,
        )  # fmt: skip

    start = [0.8, 0.8, 4e-6, 2e-10, 1.0] + ([3e-12] if dtype == "fp8" else [])
    found = relative_fit(lambda x: gemm_seconds(rows, rates, made(x), dtype), start, rows["seconds"].to_numpy())
    return made(found)


def fit_decode_attention(gpu: str, rows: pl.DataFrame, grouped: bool, about: dict[str, str]):
    """Coefficients of decode attention, for grouped-query or for multi-head shapes."""
    rates = peak_rates(accelerator(gpu))
    rows = _fitted_half(rows.filter((pl.col("heads") > pl.col("kv_heads")) == grouped))

    def made(x: np.ndarray) -> DecodeAttentionCoefficients:
        return DecodeAttentionCoefficients(
            grouped=grouped, launch_s=x[0], split_s=x[1], s_per_kv_head=x[2],
            memory_fraction=min(x[3], 1.0), cached_memory_fraction=x[4], **about,
        )  # fmt: skip

    def predict(x: np.ndarray) -> np.ndarray:
        return decode_attention_seconds(rows, rates, made(x), cache_bytes(gpu), "bf16")

    return made(relative_fit(predict, [1e-5, 3e-6, 3e-8, 0.8, 1.0], rows["seconds"].to_numpy()))


def fit_prefill_attention(gpu: str, rows: pl.DataFrame, about: dict[str, str]) -> PrefillAttentionCoefficients:
    """Coefficients of attention over prompts."""
    rates, rows = peak_rates(accelerator(gpu)), _fitted_half(rows)

    def made(x: np.ndarray) -> PrefillAttentionCoefficients:
        return PrefillAttentionCoefficients(
            launch_s=x[0], compute_fraction=min(x[1], 1.0), memory_fraction=min(x[2], 1.0),
            cached_memory_fraction=x[3], s_per_head=x[4], **about,
        )  # fmt: skip

    def predict(x: np.ndarray) -> np.ndarray:
        return prefill_attention_seconds(rows, rates, made(x), cache_bytes(gpu))

    return made(relative_fit(predict, [1e-5, 0.55, 0.4, 0.6, 3e-9], rows["seconds"].to_numpy()))


def fit_launch(gpu: str, about: dict[str, str], dtype: str = "bf16", attention: bool = True) -> LaunchConstants:
    """The launch constants beside achievable rates; those of attention are for 16-bit caches.

    The rates are the profile's, or for a sweep of layers its own (`sweep_rates`).
    """
    rates, rows = achievable_rates(accelerator(gpu)), gemm_rows(gpu, dtype, about["sweep"])
    own = {} if about["sweep"] == "vllm" else sweep_rates(rows)
    faster = with_speedup(LaunchConstants(**about, dtype=dtype, gemm_s=0.0, **own).over(rates), gpu, dtype)

    def constant(rows: pl.DataFrame, name: str, predict) -> float:
        rows = _fitted_half(rows)

        def seconds(x: np.ndarray) -> np.ndarray:
            return predict(rows, LaunchConstants(**about, dtype=dtype, **({"gemm_s": 0.0} | {name: x[0]})))

        return float(relative_fit(seconds, [1e-5], rows["seconds"].to_numpy())[0])

    found = {"gemm_s": constant(rows, "gemm_s", lambda some, fit: gemm_seconds(some, faster, fit, dtype))}
    if attention:
        found["decode_attention_s"] = constant(
            decode_attention_rows(gpu),
            "decode_attention_s",
            lambda some, fit: decode_attention_seconds(some, rates, fit, 0.0, "bf16"),
        )
        found["prefill_attention_s"] = constant(
            prefill_attention_rows(gpu),
            "prefill_attention_s",
            lambda some, fit: prefill_attention_seconds(some, rates, fit, 0.0),
        )
    return LaunchConstants(**about, dtype=dtype, **found, **own)


def sweep_rates(rows: pl.DataFrame) -> dict[str, float]:
    """Achievable rates in one sweep, medians over its fitted half, as the profiles define them.

    Products of 2,048 rows or more and of about 1,024 with weights of at least 50 MB; reading those at 1 token. In
    smaller ones start and end of the kernel would count as a slow rate.
    """
    weights = pl.col("rows") * pl.col("columns")
    fitted = rows.filter(~pl.col("held_out") & (2 * weights >= 50e6))
    flops_per_s = 2 * pl.col("tokens") * weights / pl.col("seconds")
    large, few = fitted.filter(pl.col("tokens") >= 2048), fitted.filter(pl.col("tokens").is_between(900, 1100))
    single = fitted.filter(pl.col("tokens") == 1)
    return {
        "flops_per_s": large.select(flops_per_s.median()).item(),
        "flops_per_s_1024_tokens": few.select(flops_per_s.median()).item(),
        "memory_bytes_per_s": single.select((2 * weights / pl.col("seconds")).median()).item(),
    }


def with_speedup(rates: Rates, gpu: str, dtype: str) -> Rates:
    """The rates with matrix products in a narrower format."""
    speedup = float(arithmetic_speedup(accelerator(gpu), dtype))
    return rates.model_copy(update={"flops_per_s": rates.flops_per_s * speedup})


def _fitted_half(rows: pl.DataFrame) -> pl.DataFrame:
    kept = rows.filter(~pl.col("held_out"))
    return kept[thinned(kept.height)]
