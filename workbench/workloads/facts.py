"""What is known of each public trace: where it lies, what vouches for it, what was published about it."""

import functools
import tomllib
from pathlib import Path
from typing import Literal

from workbench.errors import UnknownName
from workbench.paths import facts_folder
from workbench.records import Record, Status
from workbench.workloads.stand_ins import StandIn


class Published(Record):
    """Statistics that somebody published or that were computed from the real file.

    Attributes:
        source: who says so. status: how it is known.
        values: by quantity; names are those of `TraceStatistics.table`, "group quantity".
    """

    source: str
    status: Status
    values: dict[str, float]


class Cap(Record):
    """Lengths at which a service cuts prompts or outputs off; they pile up there.

    Attributes:
        field: prompt_tokens or output_tokens. low, high: the lengths it shows as. source: who says so.
        end: whether longer ones are cut off there, or nothing is shorter (a floor).
    """

    field: str
    end: Literal["longest", "shortest"] = "longest"
    low: int
    high: int
    source: str


class OtherForm(Record):
    """The same trace in other bytes: with LF line ends where the official file has CRLF."""

    bytes: int
    source: str


class TraceFacts(Record):
    """One public trace.

    Attributes:
        name: how `trace` calls it.
        title: in words.
        format: of its file.
        home: page of the publisher.
        url: of the file, "" where it is not published.
        files: file names it goes by, the official one first.
        bytes, sha256, rows: of the official file, None where not known.
        checksum_source: who vouches for them.
        other_form: the same data in other bytes.
        licence, citation: as the publisher asks.
        span_s: from first to last arrival.
        model: what its requests ask for, where the file does not say.
        counterfeits: other files that go by its name.
        same_data_as: other names of the same requests.
        caps: where lengths are cut off.
        published: statistics.
        notes: what one must know before using it.
        stand_in: recipe for a generated trace that resembles it.
    """

    name: str
    title: str
    format: str
    home: str
    url: str = ""
    files: tuple[str, ...] = ()
    bytes: int | None = None
    sha256: str | None = None
    rows: int | None = None
    checksum_source: str = ""
    other_form: OtherForm | None = None
    licence: str
    citation: str
    span_s: float | None = None
    counterfeits: tuple[str, ...] = ()
    same_data_as: tuple[str, ...] = ()
    caps: tuple[Cap, ...] = ()
    published: tuple[Published, ...] = ()
    notes: tuple[str, ...] = ()
    stand_in: StandIn | None = None

    def value(self, quantity: str) -> float:
        """A published statistic by its name."""
        return next(group.values[quantity] for group in self.published if quantity in group.values)

    @property
    def fetch_command(self) -> str:
        """The command that downloads the trace, "" where nobody offers it."""
        return f"workbench data fetch {self.name}" if self.url else ""


@functools.cache
def all_facts() -> dict[str, TraceFacts]:
    """Facts of all traces by name."""
    return {path.stem: _read(path) for path in sorted((facts_folder() / "traces").glob("*.toml"))}


def facts_of(name: str) -> TraceFacts:
    """Facts of one trace.

    Raises:
        UnknownName: listing near names.
    """
    known = all_facts()
    if name not in known:
        raise UnknownName("trace", name, known)
    return known[name]


def facts_by_sha256(sha256: str | None) -> TraceFacts | None:
    """The trace whose official file has this checksum."""
    return next((facts for facts in all_facts().values() if facts.sha256 == sha256 is not None), None)


def same_data(first: str, second: str) -> bool:
    """Whether two named traces hold the same requests."""
    known = all_facts()
    return any(one in known and other in known[one].same_data_as for one, other in ((first, second), (second, first)))


def _read(path: Path) -> TraceFacts:
    with path.open("rb") as stream:
        return TraceFacts(**{"name": path.stem, **tomllib.load(stream)})
