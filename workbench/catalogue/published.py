"""Published points, catalogue rows and common claims: facts read from `data/`, with their sources."""

import csv
import functools
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from workbench.errors import InputError
from workbench.paths import facts_folder
from workbench.records import given_path

COLUMNS = ("experiment", "series", "x", "value", "low", "high", "unit", "kind", "source")
_TEXTS = ("experiment", "series", "x", "unit", "kind", "source")
KINDS = ("published", "read off a figure", "recorded in the artifact", "rerun", "secondary", "computed", "user")


@functools.cache
def _all() -> pl.DataFrame:
    folder = facts_folder() / "published"
    files = sorted(path for path in folder.glob("*.csv") if path.name != "rows.csv")
    return pl.concat([read_points(path) for path in files])


def published(experiment: str) -> pl.DataFrame:
    """Published points of one experiment (columns: see `COLUMNS`); an empty table where there are none."""
    return _all().filter(pl.col("experiment") == experiment)


def read_points(path: str | Path, experiment: str | None = None) -> pl.DataFrame:
    """Read a file of published points, ours or a reader's own.

    A reader's own file needs `series`, `x`, `value` (or an edge, `low` or `high`) and may leave the rest out:
    `experiment` is then the one being run, `kind` reads "user" and `source` is the file's name.

    In a file for several experiments each row names its own; those of others are left out.

    Raises:
        InputError: names file, line, column and remedy.
    """
    path = given_path(path, "published")
    if not path.is_file():
        raise InputError("no such file", "give the path of a CSV file of points", file=path)
    try:
        table = pl.read_csv(path, infer_schema=False, truncate_ragged_lines=False)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error).splitlines()[0].rstrip(".")) from None
    unknown = [name for name in table.columns if name not in COLUMNS]
    _check_commas(table.columns, path)
    if unknown:
        raise InputError(
            "unknown column", f"use only the columns {', '.join(COLUMNS)}", file=path, line=1, field=unknown[0]
        )
    for name in ("series", "x"):
        if name not in table.columns:
            raise InputError(
                "column is missing", "add it to the header and to every row", file=path, line=1, field=name
            )
    lines = _lines(path, table.height)
    told = pl.Series([any(cell and cell.strip() for cell in row) for row in table.iter_rows()], dtype=pl.Boolean)
    table, lines = table.filter(told), lines.filter(told)
    defaults = {"experiment": experiment or "", "kind": "user", "source": path.name, "unit": ""}
    table = table.with_columns(
        pl.lit(defaults.get(name)).cast(pl.String).alias(name) for name in COLUMNS if name not in table.columns
    ).select(COLUMNS)
    for name in ("value", "low", "high"):
        table = table.with_columns(_numbers(table[name], lines, path, name))
    table = table.with_columns(pl.col(name).fill_null("").str.strip_chars() for name in _TEXTS)
    table = table.with_columns(
        pl.when(pl.col(name) == "").then(pl.lit(defaults[name])).otherwise(pl.col(name)).alias(name)
        for name in defaults
    )
    _check_rows(table, lines, path)
    if table.is_empty():
        raise InputError("there is no point below the header", "add a row for each", file=path)
    if experiment is None:
        return table
    ours = table.filter(pl.col("experiment") == experiment)
    if not len(ours):
        others = ", ".join(sorted(set(table["experiment"])))
        raise InputError(
            f"no point for {experiment} (its rows are for: {others})",
            "add some, or leave the column 'experiment' out",
            file=path,
        )
    return ours


def claim_of(series: str, x: str | None) -> str:
    """What a published point is about, as people say it: its series, and where on the axis it stands.

    >>> claim_of("downtime", "one link twice as fast"), claim_of("recorded time, 13B", "8")
    ('downtime (one link twice as fast)', 'recorded time, 13B at 8')
    >>> claim_of("broadcast, x = ranks", "8"), claim_of("arrivals in minute x", "3"), claim_of("x = keep-alive", "9")
    ('broadcast, ranks = 8', 'arrivals in minute x, x = 3', 'keep-alive = 9')
    >>> claim_of("gain, x = sharing ratio", "0.2"), claim_of("response, x = arrival rate in 1/s", "3")
    ('gain, sharing ratio = 0.2', 'response, arrival rate = 3/s')
    """
    if not x:
        return series
    if named := re.search(r"\bx = ([^,(]+?)(?: in ([\w/]+))?(?=,|$)", series):
        unit = f" {named[2]}".replace(" 1/", "/") if named[2] else ""
        return series.replace(named[0], f"{named[1]} = {x}{unit}")
    if re.search(r"\bx\b", series):
        return f"{series}, x = {x}"
    return f"{series} at {x}" if re.fullmatch(r"[\d.]+(e[+-]?\d+)?", x) else f"{series} ({x})"


def text_of(row: dict) -> str:
    """A published point as text: its value, or its band, which may be open on one side."""
    if row["value"] is not None:
        return f"{row['value']:.6g}"
    if row["high"] is None:
        return f"at least {row['low']:.6g}"
    if row["low"] is None:
        return f"at most {row['high']:.6g}"
    return f"{row['low']:.6g} to {row['high']:.6g}"


def _unreadable(path: Path, problem: str) -> InputError:
    """What is wrong with a file that is no table: the first row that is longer than the header, if one is."""
    with suppress(UnicodeDecodeError, csv.Error), path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream)
        header = next((cells for cells in rows if cells), [])
        _check_commas(header, path)
        line = rows.line_num + 1
        for cells in rows:
            if len(cells) > len(header) > 0:
                why = f"holds {len(cells)} cells, and the header {len(header)}"
                return InputError(
                    why, "take the surplus away, or put quotes round a text with commas", file=path, line=line
                )
            line = rows.line_num + 1
    return InputError(f"not a readable CSV file ({problem})", "save it as UTF-8 with a header line", file=path)


def _check_commas(header: Sequence[str], path: Path) -> None:
    if len(header) == 1 and (other := next((mark for mark in ";\t|" if mark in header[0]), None)):
        raise InputError(f"cells are divided by {other!r}", "save it with commas between them", file=path, line=1)


def _lines(path: Path, rows: int) -> pl.Series:
    """The line at which each row below the header begins, as an editor counts them."""
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        records, ends, begun = csv.reader(stream), [], False
        for cells in records:
            begun = begun or bool(cells)
            if begun:
                ends.append(records.line_num)
    return pl.Series(ends[:rows], dtype=pl.Int64) + 1


def _numbers(column: pl.Series, lines: pl.Series, path: Path, name: str) -> pl.Series:
    numbers = []
    for line, text in zip(lines, column, strict=True):
        try:
            number = None if text is None or text.strip() == "" else float(text)
        except ValueError:
            number = math.nan
        if number is not None and not math.isfinite(number):
            raise InputError(
                f"{text!r} is not a number", "give a number or leave it empty", file=path, line=line, field=name
            )
        numbers.append(number)
    return pl.Series(name, numbers, dtype=pl.Float64)


def _check_rows(table: pl.DataFrame, lines: pl.Series, path: Path) -> None:
    for line, row in zip(lines, table.iter_rows(named=True), strict=True):
        if not row["series"]:
            raise InputError("a point needs the name of its series", "fill it in", file=path, line=line, field="series")
        if row["value"] is None and row["low"] is None and row["high"] is None:
            raise InputError("a point needs a value, or an edge", "fill it in", file=path, line=line, field="value")
        if row["low"] is not None and row["high"] is not None and row["low"] > row["high"]:
            raise InputError("low is above high", "swap them", file=path, line=line, field="low")
        if row["kind"] not in KINDS:
            raise InputError(
                f"{row['kind']!r} is no kind", f"use one of {', '.join(KINDS)}", file=path, line=line, field="kind"
            )


@functools.cache
def rows() -> pl.DataFrame:
    """Every row of every paper's catalogue: what it plots, how it is judged, or why it cannot be done."""
    return pl.read_csv(facts_folder() / "published" / "rows.csv", infer_schema=False).fill_null("")


@functools.cache
def claims() -> pl.DataFrame:
    """What is commonly said about the papers, and whether it is so."""
    return pl.read_csv(facts_folder() / "claims.csv", infer_schema=False).fill_null("")
