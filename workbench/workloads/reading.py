"""A file, of whatever public format, as a trace."""

from pathlib import Path

import polars as pl

from workbench.workloads.building.assembling import assembled
from workbench.workloads.files.head import Head, head_of, table_head
from workbench.workloads.files.inspection import FileFacts
from workbench.workloads.files.unpacking import readable
from workbench.workloads.handle import Trace
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.origin import Origin
from workbench.workloads.readers import recognised


def read_file(path: Path, options: ReadOptions) -> Trace:
    """Read a trace file; its format is recognised by its content."""
    with readable(path, options.limits) as (packed, text):
        head = head_of(text, str(path), options.limits)
        ledger = Ledger(str(path), options.bad_rows)
        made = _trace(head, options, ledger, packed)
        if head.kind == "parquet":
            return made
        rows = made.origin.rows_read
        ledger.note("byte-order mark", int(text.bom), "skipped", example_row=1)
        ledger.note("CRLF line end", rows * text.crlf, "read as one line end", example_row=1)
        ledger.note("no newline at the end", int(not text.final_newline), "last row kept", example_row=rows)
        return made.model_copy(update={"defects": ledger.table()})


def read_table(frame: pl.DataFrame, options: ReadOptions) -> Trace:
    """Read requests given in code as a polars table."""
    label = "the table"
    return _trace(table_head(frame, label), options, Ledger(label, options.bad_rows), None)


def _trace(head: Head, options: ReadOptions, ledger: Ledger, packed: FileFacts | None) -> Trace:
    form = recognised(head, options)
    made = assembled(head, form, options, ledger)
    origin = Origin(
        name="table" if packed is None else packed.path.name,
        format=form.name,
        file=None if packed is None else str(packed.path),
        sha256=None if packed is None else packed.sha256,
        bytes=None if packed is None else packed.bytes,
        clock=made.clock,
        start_s=made.start_s,
        rows_read=made.rows_read,
        block_tokens=made.mapping.block_tokens,
        transformations=made.steps,
    )
    return Trace(requests=made.requests, defects=ledger.table(), origin=origin)
