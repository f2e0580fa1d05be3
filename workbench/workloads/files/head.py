"""The first row of a file: what kind it is and which columns it has, before anything is read in bulk."""

import csv
import io
import json
from pathlib import Path
from typing import Literal

import polars as pl

from workbench.errors import InputError
from workbench.records import Record
from workbench.workloads.files.inspection import FileFacts
from workbench.workloads.options import Limits

ROW = "__row__"
"""Name of the column that numbers the data rows from 1."""

_HEAD_BYTES = 1 << 16


class Head(Record):
    """The kind of a file and its first data row.

    Attributes:
        path: the (unpacked) file, or None for rows given in code.
        label: the file's name in messages.
        kind: csv (any separator), jsonl, json (an array), parquet or table.
        columns: the file's own column names in order.
        first: the first data row, text for csv, typed otherwise.
        separator: between cells of a csv.
        objects: the entries of a JSON array.
        table: the rows given in code.
    """

    path: Path | None
    label: str
    kind: Literal["csv", "jsonl", "json", "parquet", "table"]
    columns: tuple[str, ...]
    first: dict[str, object]
    separator: str = ","
    objects: list[dict] | None = None
    table: pl.DataFrame | None = None

    def has(self, *names: str) -> bool:
        """Whether all these columns are there."""
        return set(names) <= set(self.columns)

    @property
    def shown(self) -> str:
        """The columns in a sentence: on one line, the first twelve, long names cut (a quotation mark may be open)."""
        short = (" ".join(name.split()) for name in self.columns[:12])
        return ", ".join(name if len(name) <= 40 else f"{name[:37]}..." for name in short)


def head_of(text: FileFacts, label: str, limits: Limits) -> Head:
    """Look at the first lines of a file.

    Raises:
        InputError: when there is no header, no row, a doubled column, or the first line is not JSON.
    """
    if text.is_parquet:
        return _parquet(text.path, label)
    with text.path.open("rb") as stream:
        start = stream.read(_HEAD_BYTES).decode("utf-8-sig", errors="ignore").lstrip()
    if start.startswith("{"):
        return _json_lines(text.path, label)
    if start.startswith("["):
        return _json_array(text, label, limits)
    return _separated(text.path, label, start)


def _json_lines(path: Path, label: str) -> Head:
    with path.open(encoding="utf-8-sig") as stream:
        line, text = next((number, text) for number, text in enumerate(stream, start=1) if text.strip())
    try:
        first = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the line is not JSON ({error})", "give one JSON object a line", file=label, line=line
        ) from None
    return Head(path=path, label=label, kind="jsonl", columns=checked_names(list(first), label), first=first)


def _json_array(text: FileFacts, label: str, limits: Limits) -> Head:
    if text.path.stat().st_size > limits.array_bytes:
        problem = f"a JSON array of more than {limits.array_bytes:,} bytes cannot be read in parts"
        raise InputError(problem, "write it as JSON Lines, one object a line", file=label)
    try:
        values = json.loads(text.path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"the file is not JSON ({error})", "correct the file", file=label) from None
    if not values:
        raise InputError("the list is empty", "give at least one request", file=label)
    for row, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise InputError("the entry is not a JSON object", "give a list of objects", file=label, row=row)
    names = checked_names(list(values[0]), label)
    return Head(path=text.path, label=label, kind="json", columns=names, first=values[0], objects=values)


def table_head(frame: pl.DataFrame, label: str) -> Head:
    """The head of rows given in code as a polars table."""
    if not frame.height:
        raise InputError("the table holds no rows", "give at least one request", file=label)
    first = frame.row(0, named=True)
    names = checked_names(frame.columns, label)
    return Head(path=None, label=label, kind="table", columns=names, first=first, table=frame)


def _parquet(path: Path, label: str) -> Head:
    try:
        frame = pl.scan_parquet(path)
        names, first = frame.collect_schema().names(), frame.head(1).collect()
    except pl.exceptions.PolarsError as error:
        problem = f"the Parquet file cannot be read ({str(error).splitlines()[0]})"
        raise InputError(problem, "write or fetch it again", file=label) from None
    if not first.height:
        raise InputError("the file holds no rows", "give a file with at least one request", file=label)
    return Head(
        path=path, label=label, kind="parquet", columns=checked_names(names, label), first=first.row(0, named=True)
    )


def _separated(path: Path, label: str, start: str) -> Head:
    if "\n" not in start and "\r" in start:
        raise InputError("lines end with bare carriage returns", "convert them with `tr '\\r' '\\n'`", file=label)
    separator = max(",;\t", key=start.partition("\n")[0].count)
    records = csv.reader(io.StringIO(start, newline=""), delimiter=separator)
    names = [name.strip() for name in next(records)]
    if all(_is_value(name) for name in names):
        problem = f"the first line ({', '.join(names[:4])}) is not a header"
        raise InputError(problem, "add a first line with the column names", file=label)
    cells = next((row for row in records if any(row)), None)
    if cells is None:
        raise InputError("the file holds a header and no rows", "give a file with at least one request", file=label)
    first = dict(zip(names, cells, strict=False))
    return Head(
        path=path, label=label, kind="csv", columns=checked_names(names, label), first=first, separator=separator
    )


def checked_names(names: list[str], label: str) -> tuple[str, ...]:
    """Column names that are all different."""
    for name in names:
        if names.count(name) > 1:
            raise InputError("two columns bear this name", "rename one of them", file=label, field=name)
    return tuple(names)


def _is_value(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return name[:4].isdigit() and name[4:5] == "-"
    return True
