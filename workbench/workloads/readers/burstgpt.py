"""BurstGPT 1, 2 and 3: whole seconds of an unknown time zone, failures as rows without response tokens.

Columns are taken by name, since version 3 inserts `Session ID` and `Elapsed time` before the model. Source:
HPMLL/BurstGPT, release v2.0.
"""

import polars as pl

from workbench.errors import InputError
from workbench.workloads.files.head import ROW
from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Format, Mapping

_LOG_TYPE = "Log Type"
_INSERTED = ("Session ID", "Elapsed time")


def _noted(frame: pl.LazyFrame, rows: Rows, options: ReadOptions, ledger: Ledger) -> pl.LazyFrame:
    if rows.head.has(*_INSERTED):
        count = int(rows.collect(frame.select(pl.len())).item())
        ledger.note(f"{' and '.join(_INSERTED)} stand before the model", count, "columns taken by name, not by place")
    return _of_one_log(frame, rows, options, ledger)


def _of_one_log(frame: pl.LazyFrame, rows: Rows, options: ReadOptions, ledger: Ledger) -> pl.LazyFrame:
    if options.log_type is None:
        return frame
    counts = rows.collect(frame.group_by(_LOG_TYPE).agg(pl.len(), pl.col(ROW).min()).sort(ROW))
    known = counts[_LOG_TYPE].to_list()
    if options.log_type not in known:
        problem = f"there is no row with log type {options.log_type!r}"
        shown = ", ".join(repr(name) for name in known[:4])
        raise InputError(problem, f"the file has {shown}", file=rows.head.label, field=_LOG_TYPE)
    others = counts.filter(pl.col(_LOG_TYPE) != options.log_type)
    left_out = int(others["len"].sum())
    first = others[ROW].min()
    ledger.note(f"log type other than {options.log_type!r}", left_out, "row left out", left_out, first)
    return frame.filter(pl.col(_LOG_TYPE) == options.log_type)


BURSTGPT = Format(
    name="burstgpt",
    matches=lambda head: head.has("Timestamp", "Model", "Request tokens", "Response tokens", _LOG_TYPE),
    mapping=Mapping(
        arrival="Timestamp",
        unit="s",
        clock="local",
        prompt="Request tokens",
        output="Response tokens",
        model="Model",
        cell_s=1.0,
        extra=(_LOG_TYPE,),
    ),
    prepare=_noted,
    options=("log_type",),
)
