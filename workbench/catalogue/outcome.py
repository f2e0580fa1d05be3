"""What one run of an experiment leaves behind, before it is drawn or saved."""

from typing import Any, Literal

import polars as pl

from workbench.records import Record, Source
from workbench.results import Agreement, Verdict


class Outcome(Record):
    """Tables, verdicts, agreements and sources of one run.

    Attributes:
        experiment: id in the catalogue.
        parameters: every parameter with the value it had.
        tables: name -> polars frame with a `backend` column (and `replication` where several were run).
        published: the points that were laid beside, the reader's own among them.
        comparable: whether ours may be judged against the published points; `reason` says why not.
        not_run: backend -> why it did not run and what adds it.
        sentence: one sentence computed from the tables.
        seed, seeds: the run's seed and the seed of each replication.
        origin: versions, machine kind and date of the run.
    """

    experiment: str
    parameters: dict[str, Any]
    backends: tuple[str, ...]
    tables: dict[str, pl.DataFrame]
    published: pl.DataFrame
    comparable: bool
    reason: str
    verdicts: tuple[Verdict, ...]
    agreement: tuple[Agreement, ...]
    sources: tuple[Source, ...]
    not_run: dict[str, str]
    sentence: str
    mode: Literal["quick", "full"]
    seed: int
    seeds: tuple[int, ...]
    origin: dict[str, str]
