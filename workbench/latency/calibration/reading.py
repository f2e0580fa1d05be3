"""Read benchmark rows: a CSV, JSON Lines or Parquet file with one measured step a row."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from workbench.errors import InputError, UnknownName
from workbench.records import given_path, shown
from workbench.workloads.files.head import ROW, Head, head_of
from workbench.workloads.files.rows import Rows
from workbench.workloads.files.unpacking import readable
from workbench.workloads.options import Limits

NUMBERS = ("batch", "prompt_tokens", "cached_tokens", "context_tokens", "tp", "seconds")
TEXTS = ("phase", "model", "accelerator", "dtype")
COLUMNS = (*TEXTS, *NUMBERS)
NEEDED = ("phase", "seconds")
PHASES = ("prefill", "decode", "mixed")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
LIMITS = Limits(rows=1_000_000, file_bytes=1 << 30)


def benchmark_rows(path: str | Path, columns: Mapping[str, str] | None = None, unit: str = "s") -> pl.DataFrame:
    """The rows of a file with our own column names, checked, numbered from 1 in the column `row`.

    Parameters:
        path: the file.
        columns: our name -> the file's name, for columns that are called otherwise.
        unit: of the measured times: "s", "ms", "us" or "ns".

    Raises:
        InputError: a missing column, or a cell that cannot be, with its row.
    """
    path = given_path(path, "path")
    if not isinstance(unit, str) or unit not in UNITS:
        raise UnknownName("unit of time", shown(unit), UNITS)
    if not isinstance(columns or {}, Mapping):
        raise InputError(f"is {shown(columns)}", "give a table of our column -> the file's", field="columns")
    given = dict(columns or {})
    for ours in given:
        if ours not in COLUMNS:
            raise UnknownName("column of benchmark rows", ours, COLUMNS)
    with readable(path, LIMITS) as (_, facts):
        head = head_of(facts, str(path), LIMITS)
        wanted = _mapping(head, given)
        rows = Rows(head, dict.fromkeys(wanted.values(), False), (0, None), LIMITS)
        table = rows.collect(rows.frame.select(ROW, *(pl.col(theirs).alias(ours) for ours, theirs in wanted.items())))
    table = table.rename({ROW: "row"})
    blank = pl.all_horizontal(pl.col(list(wanted)).is_null())
    table = table.filter(~blank)
    for name in NUMBERS:
        table = _with_number(table, name, str(path))
    return _checked(table.with_columns(pl.col("seconds") * UNITS[unit]), str(path))


def _mapping(head: Head, given: dict[str, str]) -> dict[str, str]:
    wanted = {ours: ours for ours in COLUMNS if ours in head.columns} | given
    for ours, theirs in wanted.items():
        if theirs not in head.columns:
            raise InputError(f"there is no column {theirs!r} for {ours}", f"choose from {head.shown}", file=head.label)
    for ours in NEEDED:
        if ours not in wanted:
            remedy = f"name it with columns={{{ours!r}: ...}} or --column {ours}=...; the file has"
            raise InputError(f"there is no column {ours}", f"{remedy} {head.shown}", file=head.label)
    return wanted


def _with_number(table: pl.DataFrame, name: str, label: str) -> pl.DataFrame:
    if name not in table.columns:
        return table.with_columns(pl.lit(None, pl.Float64).alias(name))
    text = table[name].cast(pl.String).str.strip_chars()
    value = text.cast(pl.Float64, strict=False)
    bad = text.is_not_null() & (text != "") & (value.is_null() | ~value.is_finite() | (value < 0))
    if bad.any():
        first = int(bad.arg_max())
        problem = f"is {text[first]!r:.60}, not a finite number of 0 or more"
        raise InputError(problem, "correct the cell", file=label, row=table["row"][first], field=name)
    return table.with_columns(value.alias(name))


def _checked(table: pl.DataFrame, label: str) -> pl.DataFrame:
    table = table.with_columns(pl.col("phase").cast(pl.String).str.strip_chars().str.to_lowercase())
    table = table.with_columns(pl.col("tp").fill_null(1.0), pl.col("cached_tokens").fill_null(0.0))
    prompted, decoding = pl.col("phase") != "decode", pl.col("phase") != "prefill"
    table = table.with_columns(pl.when(~decoding).then(pl.col("batch").fill_null(1.0)).otherwise(pl.col("batch")))
    rules = (
        ("phase", ~pl.col("phase").is_in(PHASES).fill_null(False), f"write {', '.join(PHASES)}"),
        ("seconds", ~(pl.col("seconds") > 0).fill_null(False), "a measured time is above 0"),
        ("batch", ~(pl.col("batch") >= 1).fill_null(False), "a step has at least 1 request"),
        ("prompt_tokens", prompted & ~(pl.col("prompt_tokens") >= 1).fill_null(False), "a prompt has at least 1 token"),
        ("context_tokens", decoding & ~(pl.col("context_tokens") >= 1).fill_null(False), "give tokens per request"),
        ("tp", ~((pl.col("tp") >= 1) & (pl.col("tp") % 1 == 0)), "give a whole number of accelerators"),
    )
    for name, broken, remedy in rules:
        wrong = table.filter(broken)
        if wrong.height:
            value = wrong[name][0]
            shown = "is empty" if value is None else f"is {value!r:.60}"
            raise InputError(shown, remedy, file=label, row=wrong["row"][0], field=name)
    return table
