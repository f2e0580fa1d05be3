"""Where each number of a run comes from, as one table."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.published import claim_of, text_of
from workbench.records import Source


def all_sources(outcome: Outcome) -> pl.DataFrame:
    """Parameters, hardware figures and published points of a run: quantity, value, unit, status, source."""
    points = [
        Source(
            quantity=claim_of(row["series"], row["x"]),
            value=text_of(row),
            unit=row["unit"] or "",
            status="computed" if row["kind"] == "computed" else "published",
            source=f"{row['kind']}: {row['source']}",
        )
        for row in outcome.published.iter_rows(named=True)
    ]
    rows = [source.model_dump() for source in (*outcome.sources, *points)]
    return pl.DataFrame(rows, schema=dict.fromkeys(Source.model_fields, pl.String))
