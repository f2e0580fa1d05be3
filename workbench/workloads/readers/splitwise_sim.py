"""splitwise-sim's input: seconds, one row a request; only rows of request type 2 are language-model requests.

Source: Mutinifni/splitwise-sim, traces/.
"""

import polars as pl

from workbench.workloads.cells import whole
from workbench.workloads.files.head import ROW
from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Format, Mapping

_TYPE, _LLM = "request_type", 2


def _language_only(frame: pl.LazyFrame, rows: Rows, options: ReadOptions, ledger: Ledger) -> pl.LazyFrame:
    is_llm = (whole(_TYPE, frame.collect_schema()[_TYPE]) == _LLM).fill_null(False)
    count, first = rows.collect(frame.filter(~is_llm).select(pl.len(), pl.col(ROW).min())).row(0)
    ledger.note(f"request type other than {_LLM}", count, "row left out", count, first)
    return frame.filter(is_llm)


SPLITWISE_SIM = Format(
    name="splitwise-sim",
    matches=lambda head: head.has("request_id", _TYPE, "arrival_timestamp", "prompt_size", "token_size"),
    mapping=Mapping(
        arrival="arrival_timestamp",
        prompt="prompt_size",
        output="token_size",
        request_id="request_id",
        extra=(_TYPE,),
    ),
    prepare=_language_only,
)
