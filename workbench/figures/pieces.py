"""Curves of one quantity that backends answer for different numbers of pieces (forwarding units, blocks).

A simulation or a real run cuts a message into fewer pieces than the formula can. Every mark is then told with its
number of pieces, and the formula for the very number of a real run is drawn beside the formula for the finest cut.
"""

from collections.abc import Mapping

import polars as pl

from workbench.figures.base import Palette, curve
from workbench.figures.canvas import Trace

FORMULA = "analytic"
REAL = ("torch", "recorded")


def finest(table: pl.DataFrame, pieces: str) -> pl.DataFrame:
    """Of each backend the rows with the most pieces."""
    return table.filter(pl.col(pieces) == pl.col(pieces).max().over("backend"))


def counts(table: pl.DataFrame, pieces: str) -> dict[str, int]:
    """Backend -> its largest number of pieces."""
    return dict(table.group_by("backend", maintain_order=True).agg(pl.col(pieces).max()).rows())


def beside(found: Mapping[str, int]) -> list[int]:
    """Numbers of pieces of real runs for which the formula is drawn too: few enough that the difference is seen."""
    real = {found[backend] for backend in REAL if backend in found}
    return sorted(count for count in real if count != found.get(FORMULA, count))


def curves(
    table: pl.DataFrame, x: str, y: str, pieces: str, series: str, palette: Palette, *, name: str = ""
) -> list[Trace]:
    """One series: of each backend the finest cut, and the formula, thin, for the number of pieces of a real run.

    Parameters:
        table: rows of one series with the columns `backend`, x, y and `pieces`.
        x, y: the columns across and up.
        pieces: the column that counts pieces; its name is the word for them.
        series, palette, name: as of `base.curve`.
    """
    found = counts(table, pieces)
    if len(set(found.values())) == 1:
        return curve(finest(table, pieces), x, y, series, palette, name=name)
    traces = []
    for backend, count in found.items():
        one = table.filter((pl.col("backend") == backend) & (pl.col(pieces) == count))
        traces += curve(one, x, y, series, palette, name=f"{name or series}, {count:,} {pieces}")
    for count in beside(found):
        same = table.filter((pl.col("backend") == FORMULA) & (pl.col(pieces) == count))
        for trace in curve(same, x, y, series, palette, name=f"{name or series}, {count:,} {pieces}"):
            traces.append({**trace, "line": {**trace["line"], "dash": "dot", "width": 1}})
    return traces
