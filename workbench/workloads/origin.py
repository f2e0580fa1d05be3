"""Where a trace comes from and what was done to it."""

import datetime

import polars as pl

from workbench.records import Record
from workbench.workloads.readers.mapping import Clock


class Burstiness(Record):
    """How bursty arrivals are in windows of one width.

    Attributes:
        window_s: the width.
        peak_over_mean: arrivals in the fullest window over the mean; None where there are fewer than two windows.
        cv: standard deviation over mean of the counts; None likewise.
    """

    window_s: float
    peak_over_mean: float | None
    cv: float | None


class Transformation(Record):
    """One thing that was done to a trace, in words, with what it did to the load.

    Attributes:
        name: spread, window, cut, compress, repeat, superpose, merge, ...
        parameters: its parameters as text.
        rate_before_per_s, rate_after_per_s: mean arrival rate.
        before, after: burstiness at 1, 10 and 60 s; empty for what leaves the arrivals alone.
    """

    name: str
    parameters: dict[str, str] = {}
    rate_before_per_s: float | None = None
    rate_after_per_s: float | None = None
    before: tuple[Burstiness, ...] = ()
    after: tuple[Burstiness, ...] = ()

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.name}({inside})"


class Origin(Record):
    """Where the requests come from.

    Attributes:
        name: the trace's name; a generated stand-in has one of its own that ends in `-like`.
        format: the format that was recognised in the file, or "generated".
        file: the path it was read from.
        sha256, bytes: of that file.
        source: address of the publisher.
        licence, citation: as the publisher asks.
        stand_in: whether it is generated to resemble a real trace.
        verified: what vouches for the content: "sha256", "rows" (where no checksum is published) or "nothing".
        clock: how the file tells time.
        start_s: the first arrival on that clock in seconds (since 1970 for utc).
        rows_read: data rows read, before any was left out.
        block_tokens: prompt tokens that one prefix hash covers, None without hashes.
        notes: what one must know before using the trace.
        transformations: what was done to it, in order.
    """

    name: str
    format: str
    file: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    source: str = ""
    licence: str = ""
    citation: str = ""
    stand_in: bool = False
    verified: str = "nothing"
    clock: Clock = "relative"
    start_s: float = 0.0
    rows_read: int = 0
    block_tokens: int | None = None
    notes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()

    @property
    def start(self) -> str:
        """The first arrival in words."""
        if self.clock == "utc":
            whole = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=self.start_s)
            return f"{whole.isoformat(sep=' ')} UTC"
        return {"none": "no times"}.get(self.clock, f"{self.start_s:g} s on the file's {self.clock} clock")

    @property
    def title(self) -> str:
        """The name with whatever was done to the arrivals, for figures and verdicts."""
        changes = [str(step) for step in self.transformations if step.after]
        return ", ".join([self.name, *changes])

    def changed(self, step: Transformation, **fields: object) -> "Origin":
        """The origin after one more transformation."""
        return self.model_copy(update={"transformations": (*self.transformations, step), **fields})


CHANGES = {
    "transformation": pl.String,
    "window_s": pl.Float64,
    "rate_before_per_s": pl.Float64,
    "rate_after_per_s": pl.Float64,
    "peak_over_mean_before": pl.Float64,
    "peak_over_mean_after": pl.Float64,
    "cv_before": pl.Float64,
    "cv_after": pl.Float64,
}


def changes(origin: Origin) -> pl.DataFrame:
    """What each transformation did to rate, peak/mean and CV, one row a transformation and window width."""
    rows = [
        (
            str(step),
            old.window_s,
            step.rate_before_per_s,
            step.rate_after_per_s,
            old.peak_over_mean,
            new.peak_over_mean,
            old.cv,
            new.cv,
        )
        for step in origin.transformations
        for old, new in zip(step.before, step.after, strict=True)
    ]
    return pl.DataFrame(rows, schema=CHANGES, orient="row")
