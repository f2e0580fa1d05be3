"""What an experiment hands back: verdicts and agreements as plain frozen records, and their tables."""

import io
import math
from collections.abc import Sequence
from typing import Literal, get_args

import polars as pl

from workbench.records import Record

Reading = Literal["reproduced", "differs", "undecided", "not comparable", "not possible", "fitted", "computed"]
"""What a verdict reads. Only the first five judge a published value. *fitted*: the quantity was calibrated on the very
value it is laid beside; *computed*: the value beside it is somebody's calculation, not a measurement. Neither of the
two counts as reproduced."""
READINGS: tuple[str, ...] = get_args(Reading)

Strength = Literal["exact", "within 1 %", "within 5 %", "within 10 %", "within 30 %", "band", "ordering"]


class Verdict(Record):
    """One published claim beside our number, with an honest reading.

    Attributes:
        claim: the statement that is judged, in words.
        published: the published value as text (a number with its unit, a band, an ordering).
        ours: our number in the same unit (mean over replications), or text for an ordering.
        interval: 95 % interval over replications, or None where the run is deterministic.
        tolerance: the band within which ours must fall, in the unit of `ours`.
        strength: how sharp the comparison is.
        verdict: see `Reading`.
        reason: why it reads so; for *differs* the assumption at fault and a run in which changing it moves the number.
        mode: "quick" or "full".
        seeds: the seeds of the replications.
        trace: name of the request trace, "" where none is used; a stand-in bears its own name.
    """

    claim: str
    published: str
    ours: float | str
    interval: tuple[float, float] | None = None
    tolerance: tuple[float, float] | None = None
    strength: Strength
    verdict: Reading
    reason: str
    mode: Literal["quick", "full"] = "full"
    seeds: tuple[int, ...] = ()
    trace: str = ""


class Agreement(Record):
    """How far two backends lie apart on one quantity.

    `difference` is relative, (b - a) / a: of all compared rows the one farthest outside the band `allowed`, or the
    largest in size where all lie inside; NaN where one backend has a number and the other has none. `rows` of the
    `of` rows that the first backend gives were compared; the second one may answer for fewer, but not for others.
    `independent` says whether the pair counts as evidence: compiled against SimPy does not, they share decisions.
    """

    quantity: str
    backends: tuple[str, str]
    rows: int
    of: int
    difference: float
    allowed: tuple[float, float]
    independent: bool

    @property
    def agrees(self) -> bool:
        """Whether the difference lies within what is allowed."""
        return self.allowed[0] <= self.difference <= self.allowed[1]


def read_against(ours: float, interval: tuple[float, float] | None, low: float, high: float) -> Reading:
    """Judge a number against a closed band.

    *Undecided* when the interval straddles an edge of the band, otherwise *reproduced* inside it and *differs* outside.

    >>> read_against(1.0, None, 0.9, 1.1), read_against(1.2, None, 0.9, 1.1), read_against(1.0, (0.8, 1.2), 0.9, 1.1)
    ('reproduced', 'differs', 'undecided')
    """
    if math.isnan(ours):
        return "not possible"
    edges = interval or (ours, ours)
    if low <= edges[0] and edges[1] <= high:
        return "reproduced"
    if edges[1] < low or edges[0] > high:
        return "differs"
    return "undecided"


def verdict_table(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    """Verdicts as a table with the same column types whatever they hold.

    `ours` is the number (null for orderings and where there is none), `ours_text` the same as people read it.
    """
    rows = []
    for verdict in verdicts:
        row = verdict.model_dump()
        number = isinstance(row["ours"], float)
        row["ours_text"] = f"{row['ours']:.6g}" if number else row["ours"]
        rows.append({**row, "ours": row["ours"] if number else None})
    return pl.DataFrame(rows, schema=_VERDICT_COLUMNS)


def verdict_columns(verdicts: Sequence[Verdict]) -> list[str]:
    """The fields of verdicts that readers are shown; the interval only where some run has one."""
    columns = ["verdict", "claim", "published", "ours", "interval", "strength", "reason"]
    return columns if any(verdict.interval for verdict in verdicts) else [one for one in columns if one != "interval"]


def agreement_table(agreement: Sequence[Agreement]) -> pl.DataFrame:
    """Agreements as a table, with a column that says whether the difference is allowed."""
    rows = [{**item.model_dump(), "agrees": item.agrees} for item in agreement]
    return pl.DataFrame(rows, schema=_AGREEMENT_COLUMNS)


_VERDICT_COLUMNS = {
    "claim": pl.String,
    "published": pl.String,
    "ours": pl.Float64,
    "ours_text": pl.String,
    "interval": pl.List(pl.Float64),
    "tolerance": pl.List(pl.Float64),
    "strength": pl.String,
    "verdict": pl.String,
    "reason": pl.String,
    "mode": pl.String,
    "seeds": pl.List(pl.Int64),
    "trace": pl.String,
}
_AGREEMENT_COLUMNS = {
    "quantity": pl.String,
    "backends": pl.List(pl.String),
    "rows": pl.Int64,
    "of": pl.Int64,
    "difference": pl.Float64,
    "allowed": pl.List(pl.Float64),
    "independent": pl.Boolean,
    "agrees": pl.Boolean,
}


def parquet(table: pl.DataFrame) -> bytes:
    """A table as the bytes of a Parquet file; what writes them is told by the system why they do not fit."""
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()
