"""Whole steps of Llama-3.1-8B on an RTX 4090, put together from LLMServingSim's measured kernels."""

import polars as pl

from workbench.latency.calibration.reading import PHASES
from workbench.latency.overheads import overheads
from workbench.latency.sources import step_time
from workbench.latency.validation.files import measured_table
from workbench.latency.validation.sweeps import RTX

LAYERS = 32
MODEL = "llama-3.1-8b"
ONCE_A_LAYER = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj", "rotary_emb", "act_fn")


def rtx_step_rows() -> pl.DataFrame:
    """phase, batch, prompt_tokens, cached_tokens, context_tokens, tp, seconds: what `calibrate` reads.

    A step is 32 layers (four products, two norms, rotary embedding, activation function, attention), embedding, last
    norm, output head and sampler: kernel times only, so without whatever the engine does between kernels.
    """
    dense = measured_table("llmservingsim", "rtx4090_llama3.1-8b_dense.csv")
    dense = dense.pivot(on="layer", index="tokens", values="time_us")
    layer = pl.sum_horizontal(ONCE_A_LAYER) + 2 * pl.col("layernorm")
    dense = dense.select("tokens", dense_us=LAYERS * layer + pl.col("embedding") + pl.col("final_layernorm"))
    sampled = measured_table("llmservingsim", "rtx4090_llama3.1-8b_per_sequence.csv")
    sampled = sampled.pivot(on="layer", index="sequences", values="time_us")
    sampled = sampled.select("sequences", sampled_us=pl.col("lm_head") + pl.col("sampler"))
    attention = measured_table("llmservingsim", "rtx4090_llama3.1-8b_attention.csv").with_columns(
        tokens=pl.col("prefill_chunk") + pl.col("n_decode"),
        sequences=pl.col("n_decode") + (pl.col("prefill_chunk") > 0).cast(pl.Int64),
    )
    rows = attention.join(dense, on="tokens").join(sampled, on="sequences")
    prompt, decode = pl.col("prefill_chunk") > 0, pl.col("n_decode") > 0
    return rows.select(
        phase=pl.when(prompt & decode)
        .then(pl.lit("mixed"))
        .when(prompt)
        .then(pl.lit("prefill"))
        .otherwise(pl.lit("decode")),
        batch=pl.when(decode).then("n_decode").otherwise(1),
        prompt_tokens="prefill_chunk",
        cached_tokens="kv_prefill",
        context_tokens="kv_decode",
        tp=pl.lit(1),
        seconds=(LAYERS * pl.col("time_us") + pl.col("dense_us") + pl.col("sampled_us")) / 1e6,
    ).sort("phase", "prompt_tokens", "cached_tokens", "batch", "context_tokens")


def rtx_step_errors() -> pl.DataFrame:
    """phase, steps, median_s, and for roofline and fitted kernels the median error, signed and in size.

    Overheads of step and request are left out on both sides.
    """
    rows = rtx_step_rows()
    quiet = overheads(step_s=0.0, request_s=0.0)
    predicted = {}
    for source in ("roofline", "kernels"):
        step = step_time(MODEL, RTX, source=source, overheads=quiet)
        tokens, cached, batch, context = (
            rows[name].to_numpy() for name in ("prompt_tokens", "cached_tokens", "batch", "context_tokens")
        )
        batch = batch * (rows["phase"] != "prefill").to_numpy()
        predicted[source] = pl.Series(step.mixed_s(tokens, batch, batch * context, cached))
    errors = [(name, values / rows["seconds"] - 1) for name, values in predicted.items()]
    table = (
        rows.with_columns(values.alias(name) for name, values in errors)
        .group_by("phase")
        .agg(
            pl.len().alias("steps"),
            pl.col("seconds").median().alias("median_s"),
            *(pl.col(name).abs().median().alias(f"{name}_error") for name, _ in errors),
            *(pl.col(name).median().alias(f"{name}_signed") for name, _ in errors),
        )
    )
    return table.sort(pl.col("phase").replace_strict(dict(zip(PHASES, range(len(PHASES)), strict=True))))
