"""Tables that are shown whole: a reader of a notebook should not have to guess what stands behind three dots."""

import polars as pl

from workbench.figures.text import table_html


class WholeTable(pl.DataFrame):
    """A polars frame that a notebook shows with all its rows and whole texts; what is computed from it is plain polars.

    For tables of facts with some dozens of rows: the catalogue, parameters, sources, verdicts.
    """

    def _repr_html_(self) -> str:
        return table_html(self, "1 row" if len(self) == 1 else f"{len(self)} rows")
