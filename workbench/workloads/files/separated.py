"""Comma-, semicolon- and tab-separated text, read lazily with every cell kept as text."""

import csv

import polars as pl

from workbench.errors import InputError
from workbench.workloads.files.head import ROW, Head


def separated_rows(head: Head) -> pl.LazyFrame:
    """All data rows of a separated text file, numbered from 1; blank lines are rows without any value."""
    return pl.scan_csv(
        head.path,
        infer_schema=False,
        separator=head.separator,
        new_columns=list(head.columns),
        row_index_name=ROW,
        row_index_offset=1,
    ).with_columns(pl.col(ROW).cast(pl.Int64))


def explained(head: Head, reason: str) -> InputError:
    """Find the line that polars could not read and say what is wrong with it."""
    csv.field_size_limit(1 << 30)
    width = len(head.columns)
    with head.path.open(encoding="utf-8-sig", newline="") as stream:
        records, line = csv.reader(stream, delimiter=head.separator, strict=True), 1
        try:
            for cells in records:
                if len(cells) > width:
                    problem = f"the row has {len(cells)} cells where the header has {width}"
                    return InputError(problem, "correct the row", file=head.label, line=line)
                line = records.line_num + 1
        except csv.Error as error:
            problem = f"a quotation mark is out of place ({error})"
            return InputError(problem, "correct the quotes", file=head.label, line=line)
    problem = f"the rows cannot be read ({reason.splitlines()[0]})"
    return InputError(problem, "correct the file", file=head.label)
