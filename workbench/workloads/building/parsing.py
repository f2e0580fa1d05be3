"""The first step from a file to requests: the wanted columns of the wanted part, each cell a number or null."""

import polars as pl

from workbench.errors import InputError
from workbench.workloads.cells import whole
from workbench.workloads.clocks import TICKS_PER_S, ticks
from workbench.workloads.files.head import ROW
from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Format, Mapping


def parsed(rows: Rows, mapping: Mapping, form: Format, options: ReadOptions, ledger: Ledger) -> pl.DataFrame:
    """Numbered rows with the two token counts and, where the file has them, `tick, model, request_id, hashes,
    priority`."""
    schema = rows.frame.collect_schema()
    columns = [
        pl.col(ROW),
        whole(mapping.prompt, schema[mapping.prompt]).alias("prompt_tokens"),
        whole(mapping.output, schema[mapping.output]).alias("output_tokens"),
    ]
    if mapping.arrival:
        columns.append(ticks(mapping.arrival, mapping.unit, schema[mapping.arrival]).alias("tick"))
    for source, target in ((mapping.model, "model"), (mapping.request_id, "request_id"), (mapping.hashes, "hashes")):
        if source:
            columns.append(pl.col(source).alias(target))
    if mapping.priority:
        columns.append(whole(mapping.priority, schema[mapping.priority]).alias("priority"))
    frame = _without_blank_lines(rows, list(mapping.wanted()), ledger)
    if form.prepare:
        frame = form.prepare(frame, rows, options, ledger)
    return rows.collect(_windowed(frame.select(columns), rows, mapping, options))


def _without_blank_lines(rows: Rows, names: list[str], ledger: Ledger) -> pl.LazyFrame:
    if rows.head.kind != "csv":
        return rows.frame
    blank = pl.all_horizontal(pl.col(names).is_null())
    count, first = rows.collect(rows.frame.filter(blank).select(pl.len(), pl.col(ROW).min())).row(0)
    ledger.note("blank line", count, "row left out", count, first)
    return rows.frame.filter(~blank) if count else rows.frame


def _windowed(frame: pl.LazyFrame, rows: Rows, mapping: Mapping, options: ReadOptions) -> pl.LazyFrame:
    if options.window is None:
        return frame
    if not mapping.arrival:
        raise InputError("there are no times to take a window of", "use rows= instead", file=rows.head.label)
    start, end = (bound * TICKS_PER_S[mapping.unit] for bound in options.window)
    since = pl.col("tick") - rows.collect(frame.select(pl.col("tick").min())).item()
    return frame.filter(since.is_null() | ((since >= start) & (since < end)))
