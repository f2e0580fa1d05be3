"""One way to get at the rows of any kind of file: the wanted columns, the wanted part, lazily."""

import itertools
from collections.abc import Iterable, Iterator

import polars as pl

from workbench.errors import InputError
from workbench.workloads.files.head import ROW, Head
from workbench.workloads.files.objects import line_objects, object_rows
from workbench.workloads.files.separated import explained, separated_rows
from workbench.workloads.options import Limits


class Rows:
    """The wanted columns of one file.

    Attributes:
        head: the file's kind and first row.
        frame: lazy rows with their numbers in the column `ROW`.
    """

    def __init__(self, head: Head, wanted: dict[str, bool], part: tuple[int, int | None], limits: Limits):
        """Open the rows.

        Parameters:
            head: from `head_of` or `table_head`.
            wanted: the columns to read, each with whether it holds a list of whole numbers.
            part: start (from 0) and stop (not included, None for all the rest).
            limits: what to refuse.
        """
        self.head = head
        start, stop = part
        if head.kind in ("jsonl", "json"):
            objects = line_objects(head) if head.kind == "jsonl" else enumerate(head.objects, start=1)
            chosen = _capped(itertools.islice(objects, start, stop), limits, head.label)
            self.frame = object_rows(chosen, wanted, head.label)
            return
        part_of_file = _scanned(head).slice(start, None if stop is None else max(stop - start, 0))
        self.frame = part_of_file.select(ROW, *wanted)
        # A row with more cells than the header is refused only where every column is read.
        looked_at = pl.col(head.columns if head.kind == "csv" else ROW).null_count().name.suffix(" without value")
        count = int(self.collect(part_of_file.select(pl.len().alias(ROW), looked_at))[ROW].item())
        if count > limits.rows:
            raise _too_many(limits, head.label)
        if not count:
            raise InputError("there are no rows to read", "ask for a part that the file has", file=head.label)

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Collect something made from `frame`, turning what polars dislikes into one sentence."""
        try:
            return frame.collect(engine="streaming")
        except pl.exceptions.PolarsError as error:
            if self.head.kind == "csv":
                raise explained(self.head, str(error)) from None
            problem = f"the rows cannot be read ({str(error).splitlines()[0]})"
            raise InputError(problem, "write or fetch the file again", file=self.head.label) from None

    def cell(self, row: int, column: str) -> object:
        """One cell as it stands in the file."""
        return self.collect(self.frame.filter(pl.col(ROW) == row).select(column)).item()


def _scanned(head: Head) -> pl.LazyFrame:
    if head.kind == "csv":
        return separated_rows(head)
    frame = head.table.lazy() if head.kind == "table" else pl.scan_parquet(head.path)
    return frame.with_row_index(ROW, 1).with_columns(pl.col(ROW).cast(pl.Int64))


def _capped(objects: Iterable[tuple[int, dict]], limits: Limits, label: str) -> Iterator[tuple[int, dict]]:
    for count, item in enumerate(objects, start=1):
        if count > limits.rows:
            raise _too_many(limits, label)
        yield item


def _too_many(limits: Limits, label: str) -> InputError:
    problem = f"the file holds more than {limits.rows:,} rows"
    return InputError(problem, "read a part with rows=..., or raise limits=Limits(rows=...)", file=label)
