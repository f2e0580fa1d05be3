"""What an experiment hands back: verdicts and agreements as plain frozen records, and their tables."""

import math
from collections.abc import Sequence
from typing import Literal

import polars as pl

from workbench.records import Record

Reading = Literal["reproduced", "differs", "undecided", "not comparable", "not possible", "fitted", "computed"]
"""What a verdict reads. Only the first five judge a published value. *fitted*: the quantity was calibrated on the very
value it is laid beside; *computed*: the value beside it is somebody's calculation, not a measurement. Neither of the
two counts as reproduced."""

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

    `difference` is relative ((b - a) / a, the largest in size over all compared rows), `allowed` the band for it.
    `independent` says whether the pair counts as evidence: compiled against SimPy does not, they share decisions.
    """

    quantity: str
    backends: tuple[str, str]
    rows: int
    difference: float
    allowed: tuple[float, float]
    independent: bool

    @property
    def agrees(self) -> bool:
        """Whether the difference lies within what is allowed."""
        return self.allowed[0] <= self.difference <= self.allowed[1]


def interval95(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % Student interval of the mean over independent replications, or None for fewer than two distinct runs."""
    numbers = [float(value) for value in values]
    if len(numbers) < 2:
        return None
    from scipy.stats import t

    mean = sum(numbers) / len(numbers)
    spread = math.sqrt(sum((value - mean) ** 2 for value in numbers) / (len(numbers) - 1))
    half = float(t.ppf(0.975, len(numbers) - 1)) * spread / math.sqrt(len(numbers))
    return mean - half, mean + half


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


def frame(records: Sequence[Record], kind: type[Record]) -> pl.DataFrame:
    """Records as a polars table, one column a field; an empty sequence gives an empty table with the same columns."""
    columns: dict[str, list] = {name: [] for name in kind.model_fields}
    for record in records:
        for name in columns:
            value = getattr(record, name)
            columns[name].append(list(value) if isinstance(value, tuple) else value)
    series = []
    for name, values in columns.items():
        if any(isinstance(value, str) for value in values) and any(isinstance(value, float) for value in values):
            values = [f"{value:.6g}" if isinstance(value, float) else value for value in values]
        series.append(pl.Series(name, values, strict=False) if values else pl.Series(name, [], dtype=pl.String))
    return pl.DataFrame(series)
