"""End-to-end TPOT of real servers: AIConfigurator's measured points of dense models, one row a point."""

import numpy as np
import polars as pl

from workbench.latency.validation.files import measured_table
from workbench.latency.work import work_of
from workbench.profiles import accelerator
from workbench.profiles import model as find_model

MODELS = {
    "Qwen/Qwen3-32B": "qwen3-32b",
    "nvidia/Qwen3-32B-NVFP4": "qwen3-32b",
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3.1-8b",
}
GPUS = {"h100_sxm": "h100-80gb-sxm", "h200_sxm": "h200-141gb-sxm", "b200_sxm": "b200-180gb-sxm", "gb200": "gb200"}
STANDS_FOR = {"gb200": "b200-180gb-sxm"}
"""No profile of GB200 is held: its points are only reported, against the peaks of the B200."""

BITS = {"bf16": 16.0, "fp8": 8.0, "fp4": 4.5}
"""Stored bits a weight; NVFP4 adds an 8-bit scale to every 16 weights."""

SPEEDUP = {"bf16": 1.0, "fp8": 2.0, "fp4": 4.0}
"""Peak arithmetic over that of 16 bits, by the data sheets of Hopper and Blackwell."""

SOURCE = "AIConfigurator, systems/silicon_sample.csv, Apache-2.0 licence: measured TTFT and TPOT of dense models"


def server_rows() -> pl.DataFrame:
    """accelerator, engine, precision, model, version, clients, tp, prompt_tokens, output_tokens, tpot_s, ttft_s.

    `batch_size` there is the number of clients of a closed loop. Only servers that prefill and decode on the same
    instance; those that keep the two apart (8 points) are a cluster's business.

    Raises:
        MissingData: the measurements are not on this machine.
    """
    table = measured_table("aiconfigurator", "silicon_sample_dense_subset.csv").filter(pl.col("mode") == "agg")
    return table.select(
        accelerator=pl.col("system").replace_strict(GPUS),
        engine="backend",
        precision=pl.col("precision").fill_null("bf16"),
        model=pl.col("model_path").replace_strict(MODELS),
        version=pl.col("backend_version").fill_null("not given"),
        clients=pl.col("batch_size"),
        tp=pl.col("tp_size").cast(pl.Int64),
        prompt_tokens=pl.col("isl").cast(pl.Float64),
        output_tokens=pl.col("osl").cast(pl.Float64),
        tpot_s=pl.col("silicon_tpot_ms") / 1e3,
        ttft_s=pl.col("silicon_ttft_ms") / 1e3,
    )


TERMS = ("weights", "kv_cache", "prompts", "step_s", "client_s")
"""What TPOT is made of; the first three are multiples of their time at data-sheet peaks."""

LEAST = (1.0, 0.0, 0.0, 0.0, 0.0)
"""Weights cannot be read faster than memory allows. The others may lie below 1: fewer than all clients decode while
prompts are processed, and prompts that come together are not waited for one by one."""


def tpot_columns(rows: pl.DataFrame) -> np.ndarray:
    """Seconds of every term for the rows of one group, float64 (rows, 5).

    Weights and the KV cache of all clients at their mean context (prompt and half the output) over memory bandwidth;
    arithmetic of the other clients' prompts, spread over the output tokens of one request; 1; clients.
    """
    gpu, precision, name = (rows[column][0] for column in ("accelerator", "precision", "model"))
    device, shape = accelerator(STANDS_FOR.get(gpu, gpu)), find_model(name)
    flops_per_s = float(device.nominal.flops_per_s) * SPEEDUP[precision]
    bytes_per_s = float(device.nominal.memory_bytes_per_s)
    kv_bits = 16.0 if precision == "bf16" else 8.0
    per_tp = {tp: work_of(shape, tp) for tp in rows["tp"].unique()}
    clients, prompt, output = (rows[column].to_numpy() for column in ("clients", "prompt_tokens", "output_tokens"))

    def each(value) -> np.ndarray:
        return np.array([value(per_tp[tp]) for tp in rows["tp"]])

    context = clients * (prompt + output / 2)
    return np.column_stack(
        [
            each(lambda work: work.weight_bytes) * BITS[precision] / 16 / bytes_per_s,
            context * each(lambda work: work.context_bytes) * kv_bits / 16 / bytes_per_s,
            (clients - 1) / output * prompt * each(lambda work: work.flops_per_token) / flops_per_s,
            np.ones(rows.height),
            clients,
        ]
    )
