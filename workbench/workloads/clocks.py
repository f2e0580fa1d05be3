"""Arrival times: five ways to write them, one way to hold them without losing a digit.

Whole nanoseconds since 1970 (or since the start of the file) are kept as integers until the first arrival has been
subtracted, since a double cannot hold them; everything else is a double from the start.
"""

import re

import polars as pl

from workbench.workloads.options import Unit

TICKS_PER_S = {"datetime": 1e9, "ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}

_NAIVE = "%Y-%m-%d %H:%M:%S%.f"
_ZONED = "%Y-%m-%d %H:%M:%S%.f%:z"
OFFSET = r"(Z|[+-]\d\d:?\d\d)$"
"""How the end of a stamp looks that says its distance from UTC."""

_UNIT_WORDS: dict[str, Unit] = {
    **{unit: unit for unit in ("s", "ms", "us", "ns")},
    **dict.fromkeys(("sec", "secs", "seconds"), "s"),
    **dict.fromkeys(("millis", "milliseconds"), "ms"),
    **dict.fromkeys(("micros", "microseconds"), "us"),
    **dict.fromkeys(("nanos", "nanoseconds"), "ns"),
}
_UNIX_FROM = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"))
"""From this size on a time must be counted in that unit: in seconds it would lie after the year 5000."""


def ticks(column: str, unit: Unit, dtype: pl.DataType) -> pl.Expr:
    """A column's times in its own unit: Int64 for stamps, ns and us, Float64 for ms and s; null where unreadable."""
    cell = pl.col(column)
    if unit == "datetime":
        return _stamps(cell, dtype)
    if dtype == pl.String:
        cell = cell.str.strip_chars()
    if unit in ("ns", "us"):
        exact, rounded = cell.cast(pl.Int64, strict=False), cell.cast(pl.Float64, strict=False).round()
        if dtype.is_integer():
            return exact
        rounded = pl.when(rounded.is_finite()).then(rounded).cast(pl.Int64, strict=False)
        return pl.coalesce(exact, rounded) if dtype == pl.String else rounded
    number = cell.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)


def _stamps(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if dtype == pl.String:
        text = cell.str.strip_chars().str.replace("T", " ", literal=True)
        naive = text.str.to_datetime(_NAIVE, time_unit="ns", strict=False)
        zoned = text.str.replace("Z", "+00:00", literal=True).str.to_datetime(_ZONED, time_unit="ns", strict=False)
        return pl.coalesce(naive.to_physical(), zoned.to_physical())
    return cell.cast(pl.Datetime("ns")).to_physical() if dtype.is_temporal() else pl.lit(None, dtype=pl.Int64)


def has_offset(stamp: object) -> bool:
    """Whether a written stamp says its distance from UTC.

    >>> has_offset("2024-05-10 00:00:00+00:00"), has_offset("2023-11-16 18:17:03.9799600")
    (True, False)
    """
    return re.search(OFFSET, str(stamp).strip()) is not None


def name_and_unit(name: str) -> tuple[str, Unit | None]:
    """A column name in small letters without marks, and the unit at its end if it has one.

    >>> name_and_unit("Arrival_Time (ms)"), name_and_unit("arrivalTimeNs"), name_and_unit("prompt-tokens")
    (('arrivaltime', 'ms'), ('arrivaltime', 'ns'), ('prompttokens', None))
    """
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold())
    unit = _UNIT_WORDS.get(words[-1]) if len(words) > 1 else None
    return "".join(words[:-1] if unit else words), unit


def unit_of(name: str, value: object) -> Unit:
    """The unit of a time column that nobody stated: the shape of a cell, then the name, then the size of the number.

    >>> unit_of("arrival_ms", 5), unit_of("time", "2023-11-16 18:17:03"), unit_of("ts", 1787267980082), unit_of("ts", 3)
    ('ms', 'datetime', 'ms', 's')
    """
    try:
        number = float(str(value))
    except ValueError:
        return "datetime"
    return name_and_unit(name)[1] or next((unit for size, unit in _UNIX_FROM if abs(number) >= size), "s")
