"""What users are promised: time to first token, time between tokens, and how keeping it is counted."""

from typing import Literal, get_args

from workbench.errors import InputError, UnknownName
from workbench.paths import facts_folder
from workbench.profiles.checking import build
from workbench.profiles.quantities import Seconds, sources_of
from workbench.profiles.toml_reading import read_toml
from workbench.records import Quantity, Record, Source

Definition = Literal["request", "token", "qos-artifact", "qos-reset"]
"""How attainment is counted: *request*: share of requests that keep both targets; *token*: share of tokens that come by
their deadlines; *qos-artifact*, *qos-reset*: share of time, as Aegaeon's plots compute it, and with the target reset
after a miss."""


class SLO(Record):
    """A service-level objective.

    Attributes:
        ttft_s: from the client's arrival to the first token.
        tbt_s: between tokens.
        definition: how attainment is counted, see `Definition`.
        name, note: of a preset.
    """

    ttft_s: Seconds
    tbt_s: Seconds
    definition: Definition = "request"
    name: str = ""
    note: str = ""

    def scaled(self, factor: float) -> "SLO":
        """The same promise with both targets times `factor` (0.5 is twice as strict)."""
        if not factor > 0:
            raise InputError(f"an SLO cannot be scaled by {factor}", "give a factor above 0")
        name = f"{self.name} x {factor:g}".strip()
        scaled = {
            field: Quantity(
                value=float(value) * factor,
                unit="s",
                status=value.status,
                source=value.source if factor == 1 else f"{factor:g} x {float(value):g} s: {value.source}",
            )
            for field, value in (("ttft_s", self.ttft_s), ("tbt_s", self.tbt_s))
        }
        return self.model_copy(update={**scaled, "name": name})

    def sources(self, alternates: bool = False) -> list[Source]:
        """Both targets with where they come from (an objective has no alternates)."""
        return sources_of(self, alternates)


def slo(
    preset: str | None = None,
    *,
    ttft_s: float | None = None,
    tbt_s: float | None = None,
    definition: Definition | None = None,
) -> SLO:
    """What users are promised.

    Parameters:
        preset: the objective of a paper, such as "aegaeon" or "blitzscale-72b"; any target given beside it replaces the
            preset's.
        ttft_s: seconds to the first token.
        tbt_s: seconds between tokens.
        definition: how attainment is counted: "request" (default), "token", "qos-artifact" or "qos-reset".

    Raises:
        UnknownName, InputError: no such preset; a target that is missing or no positive number.

    >>> float(slo("aegaeon").ttft_s), float(slo(ttft_s=1.25, tbt_s=0.2).tbt_s)
    (10.0, 0.2)
    """
    given = {"ttft_s": ttft_s, "tbt_s": tbt_s, "definition": definition}
    given = {field: value for field, value in given.items() if value is not None}
    if definition is not None and definition not in get_args(Definition):
        raise UnknownName("definition of attainment", str(definition), get_args(Definition))
    if preset is None:
        return build(SLO, given)
    path = facts_folder() / "slos.toml"
    tables = read_toml(path)
    sources = tables.get("sources", {})
    if not isinstance(preset, str) or preset not in tables or preset == "sources":
        raise UnknownName("SLO preset", preset, tables.keys() - {"sources"})
    return build(SLO, {"name": preset, **tables[preset], **given}, file=path, sources=sources)
