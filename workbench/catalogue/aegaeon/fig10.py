"""Figure 10: KV caches that leave and come beside the load, each on a stream of its own."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.catalogue.aegaeon import stages
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import experiment

ALL_OF_IT = "latency removed in all with fine-grained KV synchronisation, T0 to T3"
ONE_BY_ONE, BESIDE = "one by one (T2)", "each on its stream (T3)"
STREAMS = ("KV out", "weights", "KV in", "decoding")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    begin = dict(tables["streams"].filter(pl.col("stream") == "decoding").select("way", "start_s").iter_rows())
    return (
        f"Decoding goes on {begin[ONE_BY_ONE]:.3g} s after the last step when KV caches leave, weights load and KV "
        f"caches come one by one, and after {begin[BESIDE]:.3g} s when they move side by side."
    )


@experiment(
    "aegaeon/fig10",
    title="What do streams of their own buy KV caches?",
    question="How much of a switch is waiting for KV caches, and how much of that vanishes beside the load?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="pooling_formulas.streams",
    say=_say,
)
def fig10(
    context: Context,
    *,
    model: stages.Served = "llama-2-13b",
    tp: stages.Tp = 2,
    nominal_bytes_per_s: stages.Nominal = 32e9,
    kv_tokens: stages.KvTokens = 8000,
    collect_s: stages.Collect = 3.0,
) -> dict[str, pl.DataFrame]:
    """When each stream is busy in a switch: KV caches out, weights, KV caches in, decoding.

    Side by side KV caches that come share the way in with the weights; those that leave have their own.
    """
    found = stages.stages_of(context, model, tp, nominal_bytes_per_s, kv_tokens, collect_s)
    kv_s, load_s = found.kv_bytes / found.bytes_per_s, found.weight_bytes / found.bytes_per_s
    whole_s = kv_s + load_s  # both come over the same way in
    first_s = 2 * min(kv_s, load_s)  # the shorter of two that share it evenly
    ends = {"KV out": kv_s, "weights": first_s if load_s < kv_s else whole_s,
            "KV in": first_s if kv_s <= load_s else whole_s}  # fmt: skip
    step_s = max(whole_s, kv_s)
    rows = [
        (ONE_BY_ONE, "KV out", 0.0, kv_s),
        (ONE_BY_ONE, "weights", kv_s, kv_s + load_s),
        (ONE_BY_ONE, "KV in", kv_s + load_s, 2 * kv_s + load_s),
        (ONE_BY_ONE, "decoding", 2 * kv_s + load_s, 2.2 * kv_s + 1.2 * load_s),
        *((BESIDE, stream, 0.0, end) for stream, end in ends.items()),
        (BESIDE, "decoding", step_s, step_s + 0.2 * (kv_s + load_s)),
    ]
    streams = pl.DataFrame(rows, schema=["way", "stream", "start_s", "end_s"], orient="row")
    total = found.totals()
    known = [
        (ALL_OF_IT, "", 1 - step_s / total["T0"], "1"),
        ("decoding goes on after", ONE_BY_ONE, 2 * kv_s + load_s, "s"),
        ("decoding goes on after", BESIDE, step_s, "s"),
    ]
    return {"streams": streams, "headline": headline(known)}
