"""One link: what it is sold as, what software gets out of it, and how long a small message takes."""

from pydantic import model_validator

from workbench.errors import InputError
from workbench.profiles.accelerator_record import Which
from workbench.profiles.quantities import Alternates, BytesPerSecond, Seconds, sources_of
from workbench.records import Quantity, Record, Source


class Link(Record):
    """A link, full duplex unless a note says otherwise; rates are per direction.

    Attributes:
        name, label: what it is called.
        nominal_bytes_per_s: its data sheet, or what the paper calls it.
        achievable_bytes_per_s: large transfers, measured or inferred.
        latency_s: start-up time of one transfer step.
        alternates: what other sources found on such a link.
        note: anything a reader should know.
    """

    name: str = ""
    label: str = ""
    nominal_bytes_per_s: BytesPerSecond | None = None
    achievable_bytes_per_s: BytesPerSecond | None = None
    latency_s: Seconds | None = None
    alternates: Alternates = ()
    note: str = ""

    @model_validator(mode="after")
    def _has_a_rate(self):
        if self.nominal_bytes_per_s is None and self.achievable_bytes_per_s is None:
            raise ValueError("has no rate; add nominal_bytes_per_s or achievable_bytes_per_s")
        return self

    def rate(self, which: Which = "achievable") -> Quantity:
        """The rate in bytes/s per direction; where only the other of the two is known, that one (see its status)."""
        first, second = self.achievable_bytes_per_s, self.nominal_bytes_per_s
        if which == "nominal":
            first, second = second, first
        return first if first is not None else second

    def latency(self, which: Which = "achievable") -> float:
        """Start-up seconds of one transfer: 0 for the nominal link, and 0 where nobody measured it."""
        return 0.0 if which == "nominal" or self.latency_s is None else float(self.latency_s)

    def alternate(self, preset: str) -> Quantity:
        """What one paper, tool or artifact found instead."""
        for row in self.alternates:
            if row.preset == preset:
                return row.value
        known = ", ".join(row.preset for row in self.alternates) or "none"
        raise InputError(f"link {self.name} has no alternate {preset!r}", f"known alternates: {known}")

    def sources(self, alternates: bool = False) -> list[Source]:
        """Every number with where it comes from; on request also what single papers say instead."""
        return sources_of(self, alternates)
