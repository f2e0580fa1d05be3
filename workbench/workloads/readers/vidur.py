"""Vidur's processed traces: seconds or no times at all, prefill and decode tokens.

Its `splitwise_*.csv` files repeat the Azure 2023 trace with the clock set to zero. Source: microsoft/vidur,
data/processed_traces.
"""

from workbench.workloads.files.head import Head
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Format, Mapping


def _mapping(head: Head, options: ReadOptions) -> Mapping:
    timed = head.has("arrived_at")
    return Mapping(
        arrival="arrived_at" if timed else None,
        clock="relative" if timed else "none",
        prompt="num_prefill_tokens",
        output="num_decode_tokens",
    )


VIDUR = Format(
    name="vidur",
    matches=lambda head: head.has("num_prefill_tokens", "num_decode_tokens"),
    mapping=_mapping,
)
