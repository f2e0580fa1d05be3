"""How far kernels lie from measured sweeps, per GPU, kernel, shape and size: the half that was held out only."""

import polars as pl

from workbench.latency.kernel_coefficients import kernel_coefficients
from workbench.latency.rates import achievable_rates, peak_rates
from workbench.latency.traits import cache_bytes
from workbench.latency.validation.errors import TOKEN_CLASSES, errors_by_class, size_class, with_targets
from workbench.latency.validation.kernel_fitting import with_speedup
from workbench.latency.validation.kernel_models import (
    decode_attention_seconds,
    gemm_seconds,
    prefill_attention_seconds,
)
from workbench.latency.validation.reasons import with_reasons
from workbench.latency.validation.sweeps import (
    GPUS,
    RTX,
    decode_attention_rows,
    gemm_rows,
    prefill_attention_rows,
)
from workbench.profiles import accelerator

WIDE = 1024
"""Rows and columns from which on a matrix is one that a layer of a language model has; narrower ones are not."""

PROMPT_CLASSES = ((1, 31), (32, 128), (129, 512), (513, 1024), (1025, 4096), (4097, 1 << 20))
MEGABYTE_CLASSES = ((1, 10), (11, 100), (101, 1 << 20))

MODELS = ("fitted", "roofline")


def kernel_errors() -> pl.DataFrame:
    """All sweeps: accelerator, kernel, format, shape, size, rows, median_s, errors of both models, targets met, why.

    *Fitted* is five coefficients a kernel; *roofline* is the profile's achievable rates and one launch constant. "all"
    stands for the sum over finer classes. No coefficient was fitted to a held-out row, but which terms the formulas
    have was chosen with held-out errors in view, and the profiles' achievable rates are medians of whole sweeps.

    Raises:
        MissingData: the measurements are not on this machine.
    """
    tables = [gemm_errors(gpu, dtype) for gpu, dtype in SWEEPS]
    tables += [decode_attention_errors(gpu) for gpu in (*GPUS, RTX)]
    tables += [prefill_attention_errors(gpu) for gpu in (*GPUS, RTX)]
    return with_reasons(with_targets(pl.concat(tables)))


SWEEPS = (
    ("a100-80gb-sxm", "bf16"),
    ("h100-80gb-sxm", "bf16"),
    ("h100-80gb-sxm", "fp8"),
    ("h200-141gb-sxm", "bf16"),
    ("h200-141gb-sxm", "fp8"),
    ("l40s-48gb", "bf16"),
    ("l40s-48gb", "fp8"),
    (RTX, "bf16"),
)
"""Accelerators and formats of the matrix products that were swept."""


def gemm_errors(gpu: str, dtype: str) -> pl.DataFrame:
    """Matrix products of one accelerator and format."""
    table, sweep = kernel_coefficients(), "llmservingsim" if gpu == RTX else "vllm"
    fit, launch = (table.require(kind, gpu, dtype=dtype, sweep=sweep) for kind in ("gemm", "launch"))
    rows, peaks = gemm_rows(gpu, dtype, sweep), peak_rates(accelerator(gpu))
    rates = launch.over(achievable_rates(accelerator(gpu)))
    rows = rows.with_columns(
        fitted=gemm_seconds(rows, with_speedup(peaks, gpu, dtype), fit, dtype),
        roofline=gemm_seconds(rows, with_speedup(rates, gpu, dtype), launch, dtype),
        shape=pl.when(pl.min_horizontal("rows", "columns") >= WIDE).then(pl.lit("wide")).otherwise(pl.lit("narrow")),
        size=size_class(pl.col("tokens"), TOKEN_CLASSES, "tokens"),
    )
    return _named(errors_by_class(rows, ["shape", "size"], MODELS), gpu, "matrix product", dtype)


def decode_attention_errors(gpu: str) -> pl.DataFrame:
    """Decode attention with a 16-bit cache of one accelerator."""
    rows, table, cache = decode_attention_rows(gpu), kernel_coefficients(), cache_bytes(gpu)
    peaks, rates = peak_rates(accelerator(gpu)), achievable_rates(accelerator(gpu))
    parts = []
    for grouped in (True, False):
        part = rows.filter((pl.col("heads") > pl.col("kv_heads")) == grouped)
        if part.height:
            fit, launch = (
                table.require("decode_attention", gpu, grouped=grouped),
                table.require("launch", gpu, dtype="bf16"),
            )
            fitted = decode_attention_seconds(part, peaks, fit, cache, "bf16")
            roofline = decode_attention_seconds(part, rates, launch, cache, "bf16")
            parts.append(part.with_columns(fitted=fitted, roofline=roofline))
    megabytes = pl.col("requests") * pl.col("context") * pl.col("kv_heads") * pl.col("head_dim") * 4 / 1e6
    rows = pl.concat(parts).with_columns(
        shape=pl.when(megabytes * 1e6 < cache).then(pl.lit("KV in the cache")).otherwise(pl.lit("KV beyond the cache")),
        size=size_class(megabytes.ceil(), MEGABYTE_CLASSES, "MB"),
    )
    return _named(errors_by_class(rows, ["shape", "size"], MODELS), gpu, "decode attention", "bf16")


def prefill_attention_errors(gpu: str) -> pl.DataFrame:
    """Attention over prompts of one accelerator."""
    rows, table, cache = prefill_attention_rows(gpu), kernel_coefficients(), cache_bytes(gpu)
    peaks, rates = peak_rates(accelerator(gpu)), achievable_rates(accelerator(gpu))
    rows = rows.with_columns(
        fitted=prefill_attention_seconds(rows, peaks, table.require("prefill_attention", gpu), cache),
        roofline=prefill_attention_seconds(rows, rates, table.require("launch", gpu, dtype="bf16"), cache),
        shape=pl.when(pl.col("cached") > 0).then(pl.lit("chunk of a prompt")).otherwise(pl.lit("whole prompts")),
        size=size_class(pl.col("prompt"), PROMPT_CLASSES, "tokens a prompt"),
    )
    return _named(errors_by_class(rows, ["shape", "size"], MODELS), gpu, "prompt attention", "bf16")


def _named(table: pl.DataFrame, gpu: str, kernel: str, dtype: str) -> pl.DataFrame:
    named = table.with_columns(accelerator=pl.lit(gpu), kernel=pl.lit(kernel), format=pl.lit(dtype))
    first = ["accelerator", "kernel", "format"]
    return named.select(*first, pl.exclude(first))
