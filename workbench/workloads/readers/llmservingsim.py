"""LLMServingSim's workloads (nanoseconds) and the request log of its real vLLM runs (two clocks in one line).

In the log `arrival_time` is Unix time and the engine's stamps are a monotonic clock; a difference between the two means
nothing. Source: casys-kaist/LLMServingSim, workloads/ and bench/examples/*/vllm/requests.jsonl.
"""

import polars as pl

from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Format, Mapping

_ENGINE_STAMPS = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")


def _two_clocks(frame: pl.LazyFrame, rows: Rows, options: ReadOptions, ledger: Ledger) -> pl.LazyFrame:
    count = int(rows.collect(frame.select(pl.len())).item())
    stamps = ", ".join(_ENGINE_STAMPS)
    ledger.note(f"{stamps} run on another clock than arrival_time", count, "only arrival_time is used", example_row=1)
    return frame


LLMSERVINGSIM_RUN = Format(
    name="llmservingsim-run",
    matches=lambda head: head.has("request_id", "input_toks", "output_toks", "arrival_time", *_ENGINE_STAMPS),
    mapping=Mapping(
        arrival="arrival_time", clock="utc", prompt="input_toks", output="output_toks", request_id="request_id"
    ),
    prepare=_two_clocks,
)
LLMSERVINGSIM = Format(
    name="llmservingsim",
    matches=lambda head: head.has("input_toks", "output_toks", "arrival_time_ns"),
    mapping=Mapping(arrival="arrival_time_ns", unit="ns", prompt="input_toks", output="output_toks"),
)
