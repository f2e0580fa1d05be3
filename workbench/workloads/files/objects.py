"""JSON Lines and JSON arrays: one object a request, every whole number exact."""

import itertools
import json
from collections.abc import Iterable, Iterator

import polars as pl

from workbench.errors import InputError
from workbench.workloads.files.head import ROW, Head

_BATCH = 10_000
_INT64, _UINT64 = pl.List(pl.Int64), pl.List(pl.UInt64)


def line_objects(head: Head) -> Iterator[tuple[int, dict]]:
    """The numbered objects of a JSON Lines file; blank lines are skipped."""
    with head.path.open(encoding="utf-8-sig") as stream:
        row = 0
        for line, text in enumerate(stream, start=1):
            if not text.strip():
                continue
            row += 1
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                problem = f"the line is not JSON ({error})"
                raise InputError(problem, "correct or remove the line", file=head.label, line=line) from None
            if not isinstance(value, dict):
                raise InputError("the line is not a JSON object", "give one object a line", file=head.label, line=line)
            yield row, value


def object_rows(objects: Iterable[tuple[int, dict]], wanted: dict[str, bool], label: str) -> pl.LazyFrame:
    """Turn numbered objects into columns.

    Whole numbers stay whole; whatever is neither a number nor text becomes its JSON text, for the cell checks to name.

    Parameters:
        objects: the objects with their row numbers from 1.
        wanted: the keys to read, each with whether it holds a list of whole numbers.
    """
    objects = iter(objects)
    parts = []
    while batch := list(itertools.islice(objects, _BATCH)):
        columns = [pl.Series(ROW, [row for row, _ in batch], dtype=pl.Int64)]
        for name, is_list in wanted.items():
            values = [item.get(name) for _, item in batch]
            columns.append(_lists(name, values, columns[0], label) if is_list else _scalars(name, values))
        parts.append(pl.DataFrame(columns))
    if not parts:
        raise InputError("there are no rows to read", "give a file or a part of it with at least one row", file=label)
    return _joined(parts, label).lazy()


def _scalars(name: str, values: list[object]) -> pl.Series:
    if all(value is None or (type(value) is int and abs(value) < 1 << 63) for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if all(value is None or type(value) is float for value in values):
        return pl.Series(name, values, dtype=pl.Float64)
    return pl.Series(name, [_as_text(value) for value in values], dtype=pl.String)


def _as_text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _lists(name: str, values: list[object], rows: pl.Series, label: str) -> pl.Series:
    for dtype in (_INT64, _UINT64):
        try:
            return pl.Series(name, values, dtype=dtype)
        except (OverflowError, TypeError, pl.exceptions.PolarsError):
            continue
    for row, value in zip(rows, values, strict=True):
        for entry in value if isinstance(value, list) else [] if value is None else [value]:
            if type(entry) is not int:
                problem = f"{json.dumps(entry)} is not a whole number"
                raise InputError(problem, "give a list of whole numbers", file=label, row=row, field=name)
            if not -(1 << 63) <= entry < 1 << 64:
                problem = f"{entry} does not fit in 64 bits"
                raise InputError(problem, "number the ids anew from 0", file=label, row=row, field=name)
    raise _mixed_ids(name, label)


def _mixed_ids(name: str, label: str) -> InputError:
    problem = "the ids mix negative numbers with numbers above 2^63"
    return InputError(problem, "number the ids anew from 0", file=label, field=name)


def _joined(parts: list[pl.DataFrame], label: str) -> pl.DataFrame:
    for name in parts[0].columns:
        kinds = {part.schema[name] for part in parts}
        if len(kinds) > 1:
            try:
                parts = [part.with_columns(pl.col(name).cast(_common(kinds))) for part in parts]
            except pl.exceptions.InvalidOperationError:
                raise _mixed_ids(name, label) from None
    return pl.concat(parts)


def _common(kinds: set) -> pl.DataType | type[pl.DataType]:
    return _UINT64 if _UINT64 in kinds else pl.String
