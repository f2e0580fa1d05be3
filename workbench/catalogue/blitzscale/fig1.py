"""Figure 1: request rate, compute that prefill asks for, and KV cache that decode holds, second by second."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Assumption, Match, experiment
from workbench.catalogue.tracing import replayed
from workbench.errors import UserError
from workbench.profiles import Model
from workbench.workloads import superpose

_PAPER = "OSDI'25 paper"
GROWTH, KV, INSTANCES, SWING = (
    "growth of the request rate within 2 s",
    "KV memory needed for decode, Llama2-7B",
    "KV memory needed over what one instance holds, Llama2-7B",
    "swing of the KV memory needed [acceptance]",
)
REPEATED, SHIFTED = "every stamp repeated (artifact)", "copies shifted round the clock"
WITHIN_S = 2


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    row = tables["summary"].row(0, named=True)
    return (
        f"On {row['trace']} at {parameters['upscale']} times its rate, decode holds "
        f"{row['mean_kv_bytes'] / 1e9:,.0f} GB of KV cache on average, {row['low_kv_bytes'] / 1e9:,.0f} to "
        f"{row['high_kv_bytes'] / 1e9:,.0f} GB from second to second; within {WITHIN_S} s the request rate grows up "
        f"to {row['growth']:.3g} times."
    )


@experiment(
    "blitzscale/fig1",
    title="What does a burst ask for?",
    question="How fast do request rate, prefill compute and KV memory of decode change, and by how much?",
    backends=("analytic",),
    seconds={"analytic": 0.15},
    draw="demand.burst",
    panels=("rate", "flops", "kv"),
    say=_say,
    matches=(
        Match(
            (GROWTH,),
            note="an example in the text, so at least that; the caption of Figure 1 names AzureConv, the body BurstGPT",
        ),
        Match(
            (KV, INSTANCES),
            note="the mean over the trace; how far the paper's load is scaled is not stated, and load and time between "
            "tokens were settled here with this number in view",
            fitted=ALL,
            assumptions=(Assumption("the load is sixteen times the trace's", {"upscale": 8}),),
        ),
    ),
)
def fig1(
    context: Context,
    *,
    accelerator: Annotated[
        str, Par("GPU of an instance", profile="accelerator", status="published", source=f"{_PAPER} Table 1, cluster A")
    ] = "a800-80gb-sxm",
    trace: Annotated[
        str,
        Par(
            "Trace",
            trace=True,
            free=True,
            status="published",
            source=f"{_PAPER} Figure 1: AzureConv in its caption, BurstGPT in the text",
        ),
    ] = "azure-conv-2023",
    model: Annotated[
        str, Par("Model", profile="model", status="published", source=f"{_PAPER} Figure 1")
    ] = "llama-2-7b",
    upscale: Annotated[
        int,
        Par(
            "Load over the trace's",
            low=1,
            high=40,
            status="inferred",
            source="average load is half of the capacity (§6): half of 16 prefill instances of 13,000 tokens/s",
        ),
    ] = 16,
    copies: Annotated[
        str,
        Par(
            "Load is added by",
            choices=(REPEATED, SHIFTED),
            status="published",
            source="artifact scripts/figure/process_dataset_v2.py repeats every stamp",
        ),
    ] = REPEATED,
    prefill_tokens_per_s: Annotated[
        float,
        Par(
            "Prefill of an instance",
            "tokens/s",
            low=1000,
            high=50_000,
            step=500,
            status="published",
            source="artifact: 13,000 for 7B",
        ),
    ] = 13_000.0,
    tbt_s: Annotated[
        float,
        Par(
            "Time between tokens",
            "s",
            low=0.005,
            high=0.2,
            step=0.005,
            status="inferred",
            source="weights and a full KV cache read once a step at 1.5 TB/s",
        ),
    ] = 0.05,
    memory_share: Annotated[
        float,
        Par(
            "Share of GPU memory in use",
            low=0.5,
            high=1,
            step=0.01,
            status="inferred",
            source="0.9 of 80 GB less the weights; no capacity is published",
        ),
    ] = 0.9,
) -> dict[str, pl.DataFrame]:
    """Demand by second, without any queue: what would be busy if instances were never short.

    Prefill of a prompt of P tokens takes 2P FLOPs a layer parameter and, for causal attention, 2 heads x head width
    x P² a layer, in the second of its arrival. Decode starts when the prompt is done at the given rate and holds the
    prompt and the tokens so far until its last one.
    """  # fmt: skip
    shape, gpu = context.model(model), context.accelerator(accelerator)
    found = replayed(context, trace, longest_s=3600.0, published=("azure-conv-2023", "burstgpt-1", "burstgpt-2"))
    times = upscale
    if copies == SHIFTED and upscale > 1:
        found, times = superpose(found, upscale), 1
    table = found.requests
    arrival, prompt, output = (table[name].to_numpy() for name in ("arrival_s", "prompt_tokens", "output_tokens"))
    if arrival[-1] < 3:
        raise UserError(
            f"Trace {context.traces[0]} spans less than 3 s, so it has no seconds to compare; give a longer one."
        )
    second = arrival.astype(np.int64)
    counts = np.bincount(second)[:-1]  # the last second is not whole
    flops = np.bincount(second, _prefill_flops(shape, prompt))[:-1] * times
    time_s = np.arange(counts.size, dtype=float)
    held = _tokens_held(arrival + prompt / prefill_tokens_per_s, prompt, output, tbt_s, time_s)
    kv = held * (times * shape.kv_bytes_per_token)
    memory = context.cite(f"{gpu.name} memory", gpu.memory_bytes) * memory_share - shape.weight_bytes
    if memory <= 0:
        raise UserError(f"{shape.name} does not fit {gpu.name}: its weights take more than {memory_share:.0%} of it.")
    settled = kv[min(int(output.max() * tbt_s) + 1, kv.size // 2) :]  # decode has filled up
    growth = float((counts[WITHIN_S:] / np.maximum(counts[:-WITHIN_S], 1)).max())
    summary = {
        "trace": context.traces[0], "mean_kv_bytes": float(settled.mean()), "low_kv_bytes": float(settled.min()),
        "high_kv_bytes": float(settled.max()), "instance_bytes": memory, "growth": growth,
    }  # fmt: skip
    known = [
        (GROWTH, "burst", growth, "1"),
        (KV, "", summary["mean_kv_bytes"], "bytes"),
        (INSTANCES, "", summary["mean_kv_bytes"] / memory, "1"),
        ("mean KV memory by Little's law", "", _little(arrival, prompt, output, tbt_s, shape) * times, "bytes"),
    ]
    if summary["low_kv_bytes"] > 0:
        known.append((SWING, "", summary["high_kv_bytes"] / summary["low_kv_bytes"], "1"))
    demand = pl.DataFrame(
        {"time_s": time_s, "rate_per_s": counts * times, "flops_per_s": flops, "kv_bytes": kv, "instances": kv / memory}
    )
    return {"demand": demand, "summary": pl.DataFrame([summary]), "headline": headline(known)}


def _prefill_flops(shape: Model, prompt: np.ndarray) -> np.ndarray:
    linear = 2.0 * shape.layers * shape.layer_parameters
    return linear * prompt + 2.0 * shape.layers * shape.heads * shape.head_dim * prompt.astype(float) ** 2


def _tokens_held(
    start_s: np.ndarray, prompt: np.ndarray, output: np.ndarray, tbt_s: float, time_s: np.ndarray
) -> np.ndarray:
    """Tokens of all requests in decode at each instant: prompts, and one more every `tbt_s` since the start of each.

    A request of start s holds P + (t - s)/tbt until s + tbt x output, so sums of P - s/tbt and of 1 over the started,
    less those over the ended, give all instants at once.
    """
    end_s = start_s + output * tbt_s
    base = prompt - start_s / tbt_s

    def total(what: np.ndarray, key: np.ndarray) -> np.ndarray:
        order = np.argsort(key, kind="stable")
        return np.concatenate([[0.0], np.cumsum(what[order])])[np.searchsorted(key[order], time_s, "right")]

    active = total(np.ones_like(base), start_s) - total(np.ones_like(base), end_s)
    return np.maximum(total(base, start_s) - total(base, end_s) + active * time_s / tbt_s, 0.0) * (active > 0)


def _little(arrival: np.ndarray, prompt: np.ndarray, output: np.ndarray, tbt_s: float, shape: Model) -> float:
    """Arrival rate x mean of (time in decode x mean tokens held in it), in bytes."""
    each = output * tbt_s * (prompt + output / 2)
    return float(each.sum() / arrival[-1]) * shape.kv_bytes_per_token
