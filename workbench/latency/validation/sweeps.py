"""Kernel sweeps of vLLM on four GPUs: one row a shape, seconds as the median of repeats, and which half it is in."""

import polars as pl

from workbench.latency.validation.files import measured_table
from workbench.latency.validation.layers import matrix_rows

GPUS = {
    "a100-80gb-sxm": ("a100_sxm", "0.14.0"),
    "h100-80gb-sxm": ("h100_sxm", "0.14.0"),
    "h200-141gb-sxm": ("h200_sxm", "0.19.0"),
    "l40s-48gb": ("l40s", "0.14.0"),
}
"""Accelerator -> its name there, and the engine version of its matrix products (attention is 0.14.0 throughout)."""

LAYER_SWEEPS = {
    ("a40-48gb", "vidur"): "llama-2-7b",
    ("a100-80gb-sxm", "vidur"): "llama-2-7b",
    ("h100-80gb-sxm", "vidur"): "llama-2-7b",
    ("rtx-4090-24gb", "llmservingsim"): "llama-3.1-8b",
}
"""(accelerator, project) -> the model whose layers' matrix products were measured."""

FORMATS = {"bf16": "bfloat16", "fp8": "fp8"}


def gemm_rows(gpu: str, dtype: str = "bf16", sweep: str = "vllm") -> pl.DataFrame:
    """Matrix products: tokens (m), columns (n), rows (k), seconds; whole weight shapes (n, k) are held out."""
    if sweep != "vllm":
        return matrix_rows(gpu, LAYER_SWEEPS[gpu, sweep])
    label, version = GPUS[gpu]
    table = measured_table("aiconfigurator", f"gemm_{label}_vllm{version}.parquet")
    table = table.filter(pl.col("gemm_dtype") == FORMATS[dtype])
    rows = table.select(tokens="m", columns="n", rows="k", seconds=pl.col("latency") / 1e3)
    return halved(rows, ["tokens", "columns", "rows"], ["columns", "rows"])


def decode_attention_rows(gpu: str) -> pl.DataFrame:
    """One layer's decode attention: requests, heads, kv_heads, context (tokens a request), head_dim, seconds.

    Only rows with a 16-bit cache.
    """
    if gpu == RTX:
        return rtx_decode_rows()
    keys = ["requests", "heads", "kv_heads", "context", "head_dim"]
    rows = _attention(gpu, "generation").select(
        requests="batch_size",
        heads="num_heads",
        kv_heads="num_key_value_heads",
        context=pl.col("isl") + pl.col("step"),
        head_dim="head_dim",
        seconds=pl.col("latency") / 1e3,
    )
    return halved(rows, keys, ["requests", "heads", "kv_heads"])


def prefill_attention_rows(gpu: str) -> pl.DataFrame:
    """One layer's prompt attention: requests, heads, kv_heads, prompt and cached (tokens a request), head_dim, seconds.

    Only rows with a 16-bit cache: on the L40S those with an fp8 cache imply up to 19 times the peak rate.
    """
    if gpu == RTX:
        return rtx_prefill_rows()
    keys = ["requests", "heads", "kv_heads", "prompt", "cached", "head_dim"]
    rows = _attention(gpu, "context").select(
        requests="batch_size",
        heads="num_heads",
        kv_heads="num_key_value_heads",
        prompt="isl",
        cached=pl.lit(0),
        head_dim="head_dim",
        seconds=pl.col("latency") / 1e3,
    )
    return halved(rows, keys, ["requests", "heads", "kv_heads"])


def rtx_decode_rows() -> pl.DataFrame:
    """The same of LLMServingSim's RTX 4090 (32 heads on 8 KV heads of 128); every second batch is held out."""
    rows = _rtx().filter((pl.col("prefill_chunk") == 0) & (pl.col("n_decode") > 0))
    rows = rows.select(requests="n_decode", **RTX_HEADS, context="kv_decode", seconds=pl.col("time_us") / 1e6)
    return halved(rows, ["requests", "heads", "kv_heads", "context", "head_dim"], ["requests"])


def rtx_prefill_rows() -> pl.DataFrame:
    """The same, one chunk of a prompt whose first tokens are cached; every second chunk size is held out."""
    rows = _rtx().filter((pl.col("prefill_chunk") > 0) & (pl.col("n_decode") == 0))
    rows = rows.select(
        requests=pl.lit(1), **RTX_HEADS, prompt="prefill_chunk", cached="kv_prefill", seconds=pl.col("time_us") / 1e6
    )
    return halved(rows, ["requests", "heads", "kv_heads", "prompt", "cached", "head_dim"], ["prompt"])


RTX = "rtx-4090-24gb"
RTX_HEADS = {"heads": pl.lit(32), "kv_heads": pl.lit(8), "head_dim": pl.lit(128)}


def _rtx() -> pl.DataFrame:
    return measured_table("llmservingsim", "rtx4090_llama3.1-8b_attention.csv")


def _attention(gpu: str, kind: str) -> pl.DataFrame:
    table = measured_table("aiconfigurator", f"{kind}_attention_{GPUS[gpu][0]}_vllm0.14.0.parquet")
    return table.filter(pl.col("kv_cache_dtype") == FORMATS["bf16"])


def halved(rows: pl.DataFrame, keys: list[str], unit: list[str]) -> pl.DataFrame:
    """Medians of repeats, as floats; every second distinct value of `unit` (sorted) is held out, whole curves at once.

    What is fitted to one half therefore never saw the shape that it predicts in the other.
    """
    rows = rows.group_by(keys).agg(pl.col("seconds").median()).sort(keys)
    units = rows.select(unit).unique().sort(unit).with_row_index("unit")
    rows = rows.join(units, on=unit, how="left", maintain_order="left")
    rows = rows.with_columns(held_out=pl.col("unit") % 2 == 1).drop("unit")
    return rows.cast({pl.Int64: pl.Float64, pl.Int32: pl.Float64})
