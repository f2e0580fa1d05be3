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


def _text(x: object) -> str:
    return f"{x:g}" if isinstance(x, float) else str(x)
