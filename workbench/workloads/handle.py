"""The handle that users hold: a request table with its defects, statistics and origin."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import polars as pl

from workbench.records import Record
from workbench.workloads.origin import Origin, changes
from workbench.workloads.statistics.summary import TraceStatistics, trace_statistics


class Trace(Record):
    """What arrives, and where it comes from.

    Attributes:
        requests: one row a request, by arrival: `request_id` (Int64, or String where the file names requests by text),
            `model` (String), `arrival_s` (Float64, the first is 0), `prompt_tokens`, `output_tokens` (Int64) and, where
            known, `prefix_hashes` (List of Int64 or UInt64, one id per `origin.block_tokens` tokens of the prompt)
            and `priority` (Int64, 0 for those that go first).
        defects: what was wrong in the file: `defect, rows, handling, dropped, example_row`.
        origin: name, file, format, checksum, licence, absolute start, and what was done to it.
    """

    requests: pl.DataFrame
    defects: pl.DataFrame
    origin: Origin

    @cached_property
    def statistics(self) -> TraceStatistics:
        """Lengths, arrivals in windows of 1, 10 and 60 s, and prefix reuse."""
        return trace_statistics(self.requests)

    @property
    def changes(self) -> pl.DataFrame:
        """What each scaling did to rate, peak/mean and CV."""
        return changes(self.origin)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "Trace":
        """A copy with some fields replaced; unlike pydantic's own, it does not inherit remembered statistics."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return Trace(**(fields | dict(update or {})))

    def __len__(self) -> int:
        return self.requests.height

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return self.origin == other.origin and self.requests.equals(other.requests)

    __hash__ = None

    def __repr__(self) -> str:
        span = float(self.requests["arrival_s"][-1])
        kind = "stand-in" if self.origin.stand_in else "trace"
        return f"<{kind} {self.origin.title}: {len(self):,} requests over {span:,.1f} s>"

    __str__ = __repr__
