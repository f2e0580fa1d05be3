"""Mooncake (FAST'25) JSON Lines: milliseconds and 512-token prefix blocks, and the older arXiv trace of the same form.

Equal ids mean the same prefix up to and including that block; a row has one id per started block of its prompt. Times
of the conversation and toolagent files lie on a 3 s grid. Source: kvcache-ai/Mooncake, FAST25-release/README.md.
"""

from workbench.workloads.files.head import Head
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Format, Mapping

BLOCK_TOKENS = 512


def _mapping(head: Head, options: ReadOptions) -> Mapping:
    hashes = "hash_ids" if head.has("hash_ids") else None
    return Mapping(
        arrival="timestamp",
        unit="ms",
        prompt="input_length",
        output="output_length",
        hashes=hashes,
        block_tokens=(options.block_tokens or BLOCK_TOKENS) if hashes else None,
        hashes_cover_prompt=True,
        cell_s="found",
    )


MOONCAKE = Format(
    name="mooncake",
    matches=lambda head: (
        head.kind == "jsonl" and head.has("timestamp", "input_length", "output_length") and not head.has("chat_id")
    ),
    mapping=_mapping,
    options=("block_tokens",),
)
