"""ShareGPT conversations: text without times; lengths need the tokenizer of the model that will serve them.

Each reply of the assistant is one request, its prompt all earlier turns. About a third of the entries of the common
split start with an assistant turn; those turns are skipped up to the first human one.
"""

import polars as pl

from workbench.errors import InputError
from workbench.workloads.files.head import Head, table_head
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Format, Mapping

_HUMAN, _REPLY = ("human", "user"), ("gpt", "chatgpt", "bard", "assistant")


def _requests(head: Head, options: ReadOptions, ledger: Ledger) -> Head:
    if options.count_tokens is None:
        raise InputError(
            "the file holds conversations as text, not token counts",
            "pass count_tokens=, a function from text to its number of tokens",
            file=head.label,
        )
    rows, skipped, first_skipped = [], 0, None
    for number, entry in enumerate(head.objects or [], start=1):
        turns = entry.get("conversations")
        if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
            problem = "the entry has no list of turns"
            raise InputError(problem, "remove it", file=head.label, row=number, field="conversations")
        start = next((place for place, turn in enumerate(turns) if turn.get("from") in _HUMAN), len(turns))
        if start:
            skipped, first_skipped = skipped + 1, first_skipped or number
        before = 0
        for turn in turns[start:]:
            tokens = options.count_tokens(str(turn.get("value", "")))
            if turn.get("from") in _REPLY:
                rows.append((f"{entry.get('id', number)}-{len(rows)}", before, tokens))
            before += tokens
    ledger.note(
        "conversation starts with an assistant turn", skipped, "skipped to the first human turn", 0, first_skipped
    )
    table = pl.DataFrame(rows, schema=["request_id", "prompt_tokens", "output_tokens"], orient="row")
    return table_head(table, head.label)


SHAREGPT = Format(
    name="sharegpt",
    matches=lambda head: head.kind == "json" and head.has("conversations"),
    mapping=Mapping(
        arrival=None, clock="none", prompt="prompt_tokens", output="output_tokens", request_id="request_id"
    ),
    rewrite=_requests,
    options=("count_tokens",),
)
