"""Whole steps of engines of 2023 and 2024 beside the roofline: how much of what hardware allows they got."""

import json

import numpy as np
import polars as pl

from workbench.errors import InputError, MissingData
from workbench.latency.roofline import roofline
from workbench.latency.validation.files import measured_table
from workbench.paths import measured_folder
from workbench.profiles import accelerator, deployment
from workbench.profiles import model as find_model

SPLITWISE = {"a100-80gb": "a100-80gb-sxm", "h100-80gb": "h100-80gb-sxm"}
"""Hardware there -> accelerator. Its power-capped H100 rows are no measurements: 1.3 times the others' prompt times."""

DISTSERVE = {"facebook/opt-13b": "opt-13b", "facebook/opt-66b": "opt-66b"}
DISTSERVE_PROMPTS = (256.0, 512.0, 1024.0, 2048.0)
DISTSERVE_BATCHES = (1.0, 8.0, 32.0, 64.0, 128.0)
DISTSERVE_CONTEXT = 512.0


def splitwise_rows() -> pl.DataFrame:
    """accelerator, model, tp, phase, tokens (a prompt), batch, seconds: medians of five repeats.

    Prompts at batch 1, decode steps at prompts of 512; `e2e_time` is not used, it stops growing at 512 output tokens.
    """
    table = measured_table("splitwise", "perf_model.csv").filter(pl.col("hardware").is_in(list(SPLITWISE)))
    table = table.with_columns(
        accelerator=pl.col("hardware").replace_strict(SPLITWISE),
        model=pl.col("model").replace_strict({"llama2-70b": "llama-2-70b", "bloom-176b": "bloom-176b"}),
        tp=pl.col("tensor_parallel"),
        tokens=pl.col("prompt_size").cast(pl.Float64),
        batch=pl.col("batch_size").cast(pl.Float64),
    )
    keys = ["accelerator", "model", "tp", "tokens", "batch"]
    prompts = table.filter(pl.col("batch") == 1).group_by(keys).agg(seconds=pl.col("prompt_time").median() / 1e3)
    steps = table.filter(pl.col("tokens") == 512).group_by(keys).agg(seconds=pl.col("token_time").median() / 1e3)
    both = [prompts.with_columns(phase=pl.lit("prefill")), steps.with_columns(phase=pl.lit("decode"))]
    return pl.concat(both).with_columns(engine=pl.lit("Splitwise, engine of 2023")).sort("phase", *keys)


def distserve_rows() -> pl.DataFrame:
    """The same from DistServe's fitted coefficients on A100 (its own engine and vLLM), at a few sizes."""
    rows = []
    for engine in ("distserve", "vllm"):
        for name, by_tp in _profile(engine).items():
            if name not in DISTSERVE:
                continue
            for tp, fit in by_tp.items():
                about = {"accelerator": "a100-80gb-sxm", "model": DISTSERVE[name], "tp": int(tp)}
                about["engine"] = f"DistServe's fit of {engine}"
                a, b, c = fit["prefill"]
                for tokens in DISTSERVE_PROMPTS:
                    seconds = (a + b * tokens + c * tokens**2) / 1e3
                    rows.append(about | {"phase": "prefill", "tokens": tokens, "batch": 1.0, "seconds": seconds})
                for batch in DISTSERVE_BATCHES:
                    large = batch >= fit["decoding_large_small_bs_threshold"]
                    a, b, c = fit["decoding_largebs" if large else "decoding_smallbs"]
                    seconds = (a + b * batch * DISTSERVE_CONTEXT + c * batch) / 1e3
                    step = {"phase": "decode", "tokens": DISTSERVE_CONTEXT, "batch": batch, "seconds": seconds}
                    rows.append(about | step)
    return pl.DataFrame(rows)


def anchor_points() -> pl.DataFrame:
    """All of them with `roofline` seconds and `bound_s`; models that do not fit one accelerator's memory included."""
    rows = pl.concat([splitwise_rows(), distserve_rows()], how="diagonal")
    parts = []
    for (gpu, model, tp), part in rows.group_by(["accelerator", "model", "tp"], maintain_order=True):
        step = roofline(find_model(model), accelerator(gpu), deployment(tp=tp))
        tokens, batch = part["tokens"].to_numpy(), part["batch"].to_numpy()
        prompts, steps = step.prefill(tokens), step.decode(batch, batch * tokens)
        prefill = (part["phase"] == "prefill").to_numpy()
        parts.append(
            part.with_columns(
                roofline=np.where(prefill, prompts.seconds, steps.seconds),
                bound_s=np.where(prefill, prompts.bound_s, steps.bound_s),
            )
        )
    return pl.concat(parts)


def anchor_errors() -> pl.DataFrame:
    """engine, accelerator, model, tp, phase: points, median_s, median of roofline / measured - 1 and of its size.

    Also `bound_share`, the median of bound / measured: how much of data-sheet peaks the engine got.
    """
    error = pl.col("roofline") / pl.col("seconds") - 1
    keys = ["engine", "accelerator", "model", "tp", "phase"]
    table = (
        anchor_points()
        .group_by(keys)
        .agg(
            points=pl.len(),
            median_s=pl.col("seconds").median(),
            roofline_error=error.abs().median(),
            roofline_signed=error.median(),
            bound_share=(pl.col("bound_s") / pl.col("seconds")).median(),
        )
    )
    return table.sort(keys)


def _profile(engine: str) -> dict:
    folder = measured_folder()
    if folder is None:
        raise MissingData("Measured step times")
    path = folder / "distserve" / f"profiler-a100-80g.{engine}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", "fetch the measurements again", file=path) from None
