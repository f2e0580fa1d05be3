"""Where each number of a run comes from, as one table."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.published import text_of
from workbench.records import Source
from workbench.results import frame


def all_sources(outcome: Outcome) -> pl.DataFrame:
    """Parameters, hardware figures and published points of a run: quantity, value, unit, status, source."""
    points = [
        Source(
            quantity=f"{row['series']} at {row['x']}" if row["x"] else row["series"],
            value=text_of(row),
            unit=row["unit"] or "",
            status="computed" if row["kind"] == "computed" else "published",
            source=f"{row['kind']}: {row['source']}",
        )
        for row in outcome.published.iter_rows(named=True)
    ]
    return frame([*outcome.sources, *points], Source)
