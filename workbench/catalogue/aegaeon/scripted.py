"""A handful of scripted requests on one or two GPUs: what Figures 2 and 6 share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from workbench.pooling import ByRate, InSeconds, Pooling, PoolModel, lower
from workbench.pooling.model.lowered import Lowered, Outcome

ROUNDS_S = 1.0
"""Longest quota here: a turn of 4 s would hide what the figures show."""


def script(
    arrivals_s: Sequence[float],
    models: Sequence[int],
    *,
    prompt_s: float,
    outputs: int,
    switch_s: float,
    step_s: float,
    tbt_s: float,
    prefill: int,
    decode: int,
    system: str = "aegaeon",
) -> Lowered:
    """A run of requests of equal size: prompts of so many seconds, decode steps of so many whatever the batch."""
    tokens = 1000
    one = PoolModel(
        name="scripted", weight_bytes=1e9, kv_bytes_per_token=1e4, prefill=(0.0, prompt_s / tokens, 0.0, 0.0),
        decode=(step_s, 0.0, 0.0),
    )  # fmt: skip
    table = pl.DataFrame(
        {
            "request_id": np.arange(len(arrivals_s)),
            "model": [str(model) for model in models],
            "arrival_s": np.array(arrivals_s, float),
            "prompt_tokens": np.full(len(arrivals_s), tokens),
            "output_tokens": np.full(len(arrivals_s), outputs),
        }
    ).sort("arrival_s", maintain_order=True)
    pooling = Pooling(
        system=system, prefill=prefill, decode=decode, nodes=1, memory_bytes=60e9, link_bytes_per_s=64e9,
        switch=InSeconds(seconds=switch_s), assumed=ByRate(bytes_per_s=1e9 / switch_s), quota_s=ROUNDS_S, tbt_s=tbt_s,
        least_blocks=0,
    )  # fmt: skip
    return lower(pooling, dict.fromkeys(sorted(table["model"].unique()), one), table)


def judged(lowered: Lowered, out: Outcome, ttft_s: float, tbt_s: float) -> list[dict[str, Any]]:
    """Of every request: its first token, whether that was late, and how many others were."""
    rows = []
    for request, arrival_s in enumerate(lowered.requests.arrival_s.tolist()):
        times = out.token_s[out.token_at[request] : out.token_at[request + 1]]
        late = times > arrival_s + ttft_s + tbt_s * np.arange(times.size)
        rows.append(
            {"request": request, "model": int(lowered.requests.model[request]), "arrival_s": arrival_s,
             "ttft_s": float(times[0] - arrival_s), "ttft_late": int(late[0]), "tbt_late": int(late[1:].sum()),
             "finish_s": float(times[-1])}
        )  # fmt: skip
    return rows


def activity(out: Outcome) -> list[dict[str, Any]]:
    """What every GPU did when: switches and turns (prompts among them) as spans."""
    rows = [
        {"gpu": int(gpu), "what": "switch", "model": int(model), "start_s": begin, "end_s": end}
        for begin, end, gpu, model, _, _ in out.switches.tolist()
    ]
    rows += [
        {"gpu": int(gpu), "what": "turn" if tokens else "prompt", "model": int(model), "start_s": ready, "end_s": end}
        for _, ready, end, gpu, model, _, _, tokens in out.turns.tolist()
    ]
    return sorted(rows, key=lambda row: (row["gpu"], row["start_s"]))


def prompts_of(lowered: Lowered, out: Outcome) -> list[dict[str, Any]]:
    """Spans of prompts on GPUs that do nothing else."""
    rows = []
    for request, gpu in enumerate(out.prefill_instance.tolist()):
        end = float(out.first_token_s[request])
        rows.append({"gpu": gpu, "what": "prompt", "model": int(lowered.requests.model[request]),
                     "start_s": end - float(out.prefill_s[request]), "end_s": end})  # fmt: skip
    return rows


def late_tokens(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Requests whose first token was late, and those of which a later one was."""
    return sum(row["ttft_late"] for row in rows), sum(row["tbt_late"] > 0 for row in rows)
