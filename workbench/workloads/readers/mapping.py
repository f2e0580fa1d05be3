"""Which column of a file means what: all that most readers are."""

from collections.abc import Callable
from typing import Literal

import polars as pl

from workbench.records import Record
from workbench.workloads.files.head import Head
from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions, Unit

Clock = Literal["utc", "local", "relative", "none"]


class Mapping(Record):
    """From a file's columns to the request table.

    Attributes:
        arrival: column of the arrival times, None where the file has none (all requests are then there at 0).
        unit: how `arrival` is written.
        clock: utc (naive stamps are taken as UTC), local (an unknown time zone), relative, or none.
        prompt, output: columns of the token counts.
        model, request_id, hashes, priority: columns of the optional fields.
        block_tokens: prompt tokens that one hash id covers.
        hashes_cover_prompt: whether a row must have exactly one hash id per started block of its prompt.
        last_block_differs: whether the last hash id of a row is unreliable and has to go.
        cell_s: width of the grid that times lie on, "found" to find it from the times, None for no grid.
        extra: columns that `prepare` needs.
    """

    arrival: str | None
    unit: Unit = "s"
    clock: Clock = "relative"
    prompt: str
    output: str
    model: str | None = None
    request_id: str | None = None
    hashes: str | None = None
    priority: str | None = None
    block_tokens: int | None = None
    hashes_cover_prompt: bool = False
    last_block_differs: bool = False
    cell_s: float | Literal["found"] | None = None
    extra: tuple[str, ...] = ()

    def wanted(self) -> dict[str, bool]:
        """The file's columns to read, each with whether it holds lists."""
        plain = (self.arrival, self.prompt, self.output, self.model, self.request_id, self.priority, *self.extra)
        columns = {name: False for name in plain if name is not None}
        return columns | ({self.hashes: True} if self.hashes else {})


Prepare = Callable[[pl.LazyFrame, Rows, ReadOptions, Ledger], pl.LazyFrame]


class Format(Record):
    """One public trace format.

    Attributes:
        name: how tables and messages call it.
        matches: whether a file's head shows this format.
        mapping: the columns, or a function that derives them from head and options.
        rewrite: turns a file that is no table of requests into one, before the mapping.
        prepare: filters rows or notes peculiarities of the format before the cells are read.
        options: names of the options that only this format understands.
    """

    name: str
    matches: Callable[[Head], bool]
    mapping: Mapping | Callable[[Head, ReadOptions], Mapping]
    rewrite: Callable[[Head, ReadOptions, Ledger], Head] | None = None
    prepare: Prepare | None = None
    options: tuple[str, ...] = ()

    def columns(self, head: Head, options: ReadOptions) -> Mapping:
        """The mapping for this very file."""
        return self.mapping if isinstance(self.mapping, Mapping) else self.mapping(head, options)
