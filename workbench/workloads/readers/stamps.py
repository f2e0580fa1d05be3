"""What is peculiar about written stamps: those that do not say their zone, and those without a fraction of a second."""

import polars as pl

from workbench.workloads.clocks import OFFSET
from workbench.workloads.files.head import ROW
from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Prepare


def counting_stamps(column: str) -> Prepare:
    """A step of a format that notes how many of its stamps have no offset, and how many no fraction."""

    def count(frame: pl.LazyFrame, rows: Rows, options: ReadOptions, ledger: Ledger) -> pl.LazyFrame:
        if frame.collect_schema()[column] != pl.String:
            return frame
        stamp = pl.col(column).str.strip_chars()
        kinds = (
            ("stamp without an offset", ~stamp.str.contains(OFFSET), "taken as UTC"),
            ("stamp without a fraction", ~stamp.str.contains(".", literal=True), "read as a whole second"),
        )
        for defect, lacking, handling in kinds:
            number, first = rows.collect(frame.filter(lacking).select(pl.len(), pl.col(ROW).min())).row(0)
            ledger.note(defect, number, handling, example_row=first)
        return frame

    return count
