"""What was wrong with a trace, how it was handled and how many rows each defect touched."""

from collections.abc import Callable
from typing import Literal

import polars as pl

from workbench.errors import InputError
from workbench.records import Record
from workbench.workloads.files.head import ROW


class Defect(Record):
    """One kind of defect found in one trace.

    Attributes:
        defect: what is wrong, in words.
        rows: rows it touches.
        handling: what was done about it.
        dropped: rows left out because of it (each row is left out once, by the first defect that meets it).
        example_row: 1-based data row of the first case, or None where the whole file is meant.
    """

    defect: str
    rows: int
    handling: str
    dropped: int = 0
    example_row: int | None = None


SCHEMA = {
    "defect": pl.String,
    "rows": pl.Int64,
    "handling": pl.String,
    "dropped": pl.Int64,
    "example_row": pl.Int64,
}


class Ledger:
    """Collects the defects of one file while it is read."""

    def __init__(self, file: str, bad_rows: Literal["refuse", "drop"]):
        self.file, self.bad_rows = file, bad_rows
        self.defects: list[Defect] = []

    def note(self, defect: str, rows: int, handling: str, dropped: int = 0, example_row: int | None = None) -> None:
        """Record a defect that is handled; nothing is recorded when no row has it."""
        if rows:
            entry = Defect(defect=defect, rows=rows, handling=handling, dropped=dropped, example_row=example_row)
            self.defects.append(entry)

    def reject(
        self,
        frame: pl.DataFrame,
        bad: pl.Series,
        field: str,
        defect: str,
        value: Callable[[int], object] | None = None,
        remedy: str = 'correct the file or pass bad_rows="drop" to leave such rows out and count them',
    ) -> pl.DataFrame:
        """Refuse the file over the first bad row, or drop the bad rows and count them, as the user chose.

        Parameters:
            frame: the rows, with their numbers.
            bad: one boolean a row.
            field: the column at fault.
            defect: what is wrong, in words.
            value: gives the offending cell as text for a row number.
        """
        count = int(bad.sum())
        if not count:
            return frame
        first = int(frame[ROW].filter(bad)[0])
        if self.bad_rows == "refuse":
            shown = "" if value is None else f" ({_short(value(first))})"
            raise InputError(f"{defect}{shown}", remedy, file=self.file, row=first, field=field)
        self.note(f"{defect} in {field}", count, "row left out", dropped=count, example_row=first)
        return frame.filter(~bad)

    def table(self) -> pl.DataFrame:
        """The defects as a polars table, in the order they were met."""
        return pl.DataFrame([defect.model_dump() for defect in self.defects], schema=SCHEMA)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
