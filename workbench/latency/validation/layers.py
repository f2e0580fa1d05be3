"""Whole layers without attention: Vidur's operator times on three GPUs, LLMServingSim's on an RTX 4090."""

import polars as pl

from workbench.latency.validation.files import measured_table
from workbench.latency.work import work_of
from workbench.profiles import model as find_model

LAYERS = {
    ("a100-80gb-sxm", "llama-2-7b"): "mlp_a100_Llama-2-7b-hf.csv",
    ("a100-80gb-sxm", "llama-2-70b"): "mlp_a100_Llama-2-70b-hf.csv",
    ("a100-80gb-sxm", "llama-3-8b"): "mlp_a100_Meta-Llama-3-8B.csv",
    ("h100-80gb-sxm", "llama-2-7b"): "mlp_h100_Llama-2-7b-hf.csv",
    ("h100-80gb-sxm", "llama-2-70b"): "mlp_h100_Llama-2-70b-hf.csv",
    ("a40-48gb", "llama-2-7b"): "mlp_a40_Llama-2-7b-hf.csv",
    ("rtx-4090-24gb", "llama-3.1-8b"): "rtx4090_llama3.1-8b_dense.csv",
}
"""(accelerator, model) -> file."""

FITTED_MODEL = "llama-2-7b"

MATRICES = {
    "attn_pre_proj": "qkv_proj",
    "attn_post_proj": "o_proj",
    "mlp_up_proj": "gate_up_proj",
    "mlp_down_proj": "down_proj",
}
"""The four matrix products of a layer, in the order of `work.Work.matrices`: Vidur's name, LLMServingSim's name."""

ELEMENTWISE = ("input_layernorm", "post_attention_layernorm", "attn_rope", "mlp_act", "add")
"""Vidur's elementwise operators; LLMServingSim fuses the residual sums into the norms."""


def layer_rows(gpu: str, model: str) -> pl.DataFrame:
    """One layer's times: tokens, tp, seconds a matrix product (columns of `MATRICES`), gemms_s, layer_s, held_out.

    Embedding and output head are no part of it (Vidur ran Llama-2 with a vocabulary of 32,768), repeats are medians.
    Fitted are Llama-2-7B at TP 1 and 4, so other models and other TP are held out; of the RTX 4090, which was measured
    with one model at TP 1, every second token count.
    """
    name = LAYERS[gpu, model]
    table = _llmservingsim(name) if name.startswith("rtx") else _vidur(name)
    table = table.with_columns(gemms_s=pl.sum_horizontal(list(MATRICES))).sort("tp", "tokens")
    if gpu == "rtx-4090-24gb":
        return table.with_columns(held_out=pl.int_range(pl.len()) % 2 == 1)
    return table.with_columns(held_out=pl.col("tp").is_in([2, 8]) | (model != FITTED_MODEL))


def _vidur(name: str) -> pl.DataFrame:
    table = measured_table("vidur", name)
    ops = [*MATRICES, *ELEMENTWISE]
    rows = table.select(
        pl.col("num_tokens").cast(pl.Float64).alias("tokens"),
        pl.col("num_tensor_parallel_workers").alias("tp"),
        *((pl.col(f"time_stats.{op}.median") / 1e3).alias(op) for op in ops),
    )
    rows = rows.group_by("tokens", "tp").agg(pl.col(ops).median())
    return rows.with_columns(layer_s=pl.sum_horizontal(ops)).drop(list(ELEMENTWISE))


def _llmservingsim(name: str) -> pl.DataFrame:
    table = measured_table("llmservingsim", name).with_columns(pl.col("time_us") / 1e6)
    wide = table.pivot(on="layer", index="tokens", values="time_us").with_columns(pl.col("tokens").cast(pl.Float64))
    names = {theirs: ours for ours, theirs in MATRICES.items()}
    rows = wide.rename(names).with_columns(
        tp=pl.lit(1, pl.Int64),
        layer_s=pl.sum_horizontal(list(MATRICES)) + 2 * pl.col("layernorm") + pl.col("rotary_emb") + pl.col("act_fn"),
    )
    return rows.select("tokens", "tp", *MATRICES, "layer_s")


def matrix_rows(gpu: str, model: str) -> pl.DataFrame:
    """The same, one row a matrix product: tokens, rows, columns, seconds, tp, held_out."""
    shape = find_model(model)
    rows = layer_rows(gpu, model)
    parts = []
    for tp in rows["tp"].unique().sort():
        for name, matrix in zip(MATRICES, work_of(shape, tp).matrices, strict=True):
            part = rows.filter(pl.col("tp") == tp).select("tokens", "tp", "held_out", seconds=name)
            parts.append(part.with_columns(rows=pl.lit(float(matrix.rows)), columns=pl.lit(float(matrix.columns))))
    return pl.concat(parts)
