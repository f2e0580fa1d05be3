"""Qwen-Bailian JSON Lines: seconds, 16-token prefix blocks, chat turns.

The last block of a prompt is hashed with its padding, so it may differ between turns that share it: all blocks but the
last are kept for matching. Source: alibaba-edu/qwen-bailian-usagetraces-anon, README.md.
"""

from workbench.workloads.readers.mapping import Format, Mapping

QWEN = Format(
    name="qwen-bailian",
    matches=lambda head: (
        head.kind == "jsonl" and head.has("chat_id", "timestamp", "input_length", "output_length", "hash_ids")
    ),
    mapping=Mapping(
        arrival="timestamp",
        unit="s",
        prompt="input_length",
        output="output_length",
        hashes="hash_ids",
        block_tokens=16,
        last_block_differs=True,
    ),
)
