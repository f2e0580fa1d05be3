"""Cells that are not what they should be, and lengths that no request has."""

from collections.abc import Callable

import polars as pl

from workbench.errors import InputError
from workbench.workloads.cells import MAX_TOKENS
from workbench.workloads.files.head import ROW
from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Mapping


def with_sound_cells(table: pl.DataFrame, rows: Rows, mapping: Mapping, ledger: Ledger) -> pl.DataFrame:
    """Refuse or drop rows with a cell that is empty or cannot be read."""
    checks = (
        (mapping.arrival, "tick", "a time"),
        (mapping.prompt, "prompt_tokens", "a whole number"),
        (mapping.output, "output_tokens", "a whole number"),
        (mapping.model, "model", "a name"),
        (mapping.request_id, "request_id", "an id"),
        (mapping.priority, "priority", "a whole number of 0 or more"),
    )
    for column, target, kind in checks:
        if column:
            bad = table[target].is_null()
            bad = bad | (table[target] < 0) if target == "priority" else bad
            table = ledger.reject(table, bad, column, f"the cell is not {kind}", _in_file(rows, column))
    return table


def with_sound_lengths(table: pl.DataFrame, mapping: Mapping, options: ReadOptions, ledger: Ledger) -> pl.DataFrame:
    """Refuse or drop negative and absurd lengths; treat zero lengths as the user chose."""
    for column, target in ((mapping.prompt, "prompt_tokens"), (mapping.output, "output_tokens")):
        table = ledger.reject(table, table[target] < 0, column, "a negative length", _in_table(table, target))
        too_long = f"a length above {MAX_TOKENS:,} tokens"
        table = ledger.reject(table, table[target] > MAX_TOKENS, column, too_long, _in_table(table, target))
    return _without_zeros(table, mapping, options, ledger)


def _without_zeros(table: pl.DataFrame, mapping: Mapping, options: ReadOptions, ledger: Ledger) -> pl.DataFrame:
    zero = (table["prompt_tokens"] == 0) | (table["output_tokens"] == 0)
    count = int(zero.sum())
    if not count:
        return table
    case = table.filter(zero).row(0, named=True)
    defect = "zero prompt or output tokens (a failed request)"
    if options.zero_tokens == "refuse":
        field = mapping.prompt if case["prompt_tokens"] == 0 else mapping.output
        remedy = 'correct the row or pass zero_tokens="drop", "keep" or "one"'
        raise InputError("the request has zero tokens", remedy, file=ledger.file, row=case[ROW], field=field)
    if options.zero_tokens == "drop":
        ledger.note(defect, count, "row left out", count, case[ROW])
        return table.filter(~zero)
    kept = options.zero_tokens == "keep"
    ledger.note(defect, count, "kept" if kept else "zero raised to one token", example_row=case[ROW])
    return table if kept else table.with_columns(pl.col("prompt_tokens", "output_tokens").clip(1))


def _in_file(rows: Rows, column: str) -> Callable[[int], object]:
    return lambda row: rows.cell(row, column)


def _in_table(table: pl.DataFrame, target: str) -> Callable[[int], object]:
    return lambda row: table.filter(pl.col(ROW) == row)[target].item()
