"""The table of numbers that published points are judged against."""

from collections.abc import Iterable

import polars as pl

SCHEMA = {"series": pl.String, "x": pl.String, "value": pl.Float64, "unit": pl.String}


def headline(rows: Iterable[tuple[str, object, float, str]]) -> pl.DataFrame:
    """A headline table from rows (series, x, value, unit); numbers in x are written the short way.

    >>> headline([("chain", 8, 22, "steps")]).row(0)
    ('chain', '8', 22.0, 'steps')
    """
    made = [(series, _text(x), float(value), unit) for series, x, value, unit in rows]
    return pl.DataFrame(made, schema=SCHEMA, orient="row")


def curve_rows(table: pl.DataFrame, series: str, x: str, value: str, unit: str) -> list[tuple[str, object, float, str]]:
    """Headline rows of a curve, so that a reader's own points can be laid beside it: same series text, same x."""
    return [(str(name), place, number, unit) for name, place, number in table.select(series, x, value).iter_rows()]


def _text(x: object) -> str:
    return f"{x:g}" if isinstance(x, float) else str(x)
