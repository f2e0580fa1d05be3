"""Systems in which many models share GPUs: what their names stand for, as the pooling engine takes it."""

from collections.abc import Mapping
from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator

from workbench.errors import InputError, UnknownName
from workbench.pooling import Pooling
from workbench.records import Asked, AtLeastOne

PAPER = "Aegaeon (SOSP'25)"
OF_SYSTEM = ("system", "tbt_s", "ttft_s", "accelerators", "memory_bytes", "link_bytes_per_s", "switch")
"""Fields of `Pooling` that the name, the promise, the deployment or the cluster gives."""

CHANGEABLE = tuple(field for field in Pooling.model_fields if field not in OF_SYSTEM)


class PoolSystem(Asked):
    """One way in which models share a pool of GPUs; `replaced` makes another.

    Attributes:
        name, summary: what it is called and what it does.
        system: how models share instances, a key of `workbench.pooling.policy.SYSTEMS`.
        variant: run as the paper, its artifact or the simulator in that has it, see `workbench.pooling.pooling_on`.
        prefill: instances that process prompts; three in eight of the cluster's when None, as in the paper.
        changes: fields of `workbench.pooling.Pooling` that differ from the variant's.
        source: who does it so.
    """

    name: str = Field(min_length=1)
    summary: str = ""
    system: str
    variant: Literal["paper", "artifact", "simulator"] = "paper"
    prefill: AtLeastOne | None = None
    changes: Mapping[str, Any] = {}
    source: str = "given in code"

    @field_validator("changes")
    @classmethod
    def _are_of_a_pool(cls, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        for field in changes:
            if field not in CHANGEABLE:
                raise ValueError(f"{field!r} is no choice of a pool; name one of {', '.join(CHANGEABLE)}")
        return changes

    def replaced(self, **changes: Any) -> "PoolSystem":
        """The same but for some choices: fields of this record, or of `workbench.pooling.Pooling`."""
        own = {field: getattr(self, field) for field in PoolSystem.model_fields}
        for field, value in changes.items():
            if field in own and field != "system":
                own[field] = value
            elif field in CHANGEABLE:
                own["changes"] = {**own["changes"], field: value}
            else:
                raise UnknownName("choice of a pool", field, ["variant", "prefill", *CHANGEABLE])
        return PoolSystem(**own)

    @property
    def choices(self) -> pl.DataFrame:
        """What is chosen, with where it comes from: `choice, value, source`; the rest is the variant's."""
        rows = [("system", self.system, self.source), ("variant", self.variant, self.source)]
        split = "3 in 8 instances" if self.prefill is None else str(self.prefill)
        rows.append(("prefill", split, f"{PAPER} §7.2: 6 of 16" if self.prefill is None else "given in code"))
        rows += [(field, str(value), "given in code") for field, value in self.changes.items()]
        return pl.DataFrame(rows, schema=["choice", "value", "source"], orient="row")


POOL_SYSTEMS: dict[str, PoolSystem] = {
    one.name: one
    for one in (
        PoolSystem(
            name="aegaeon",
            summary="models take turns on a GPU between tokens; prompts and decoding on instances of their own",
            system="aegaeon",
            source=f"{PAPER} Algorithms 1 and 2",
        ),
        PoolSystem(
            name="serverlessllm@aegaeon",
            summary="whole requests in order of arrival, up to four of one model in a row",
            system="serverlessllm@aegaeon",
            variant="simulator",
            source=f"{PAPER} §7.1; its artifact's simulator, whose switches run at 16 GB/s",
        ),
        PoolSystem(
            name="serverlessllm-plus",
            summary="whole requests, the shortest remaining batch first, output lengths being known",
            system="serverlessllm-plus",
            variant="simulator",
            source=f"{PAPER} §7.1; its artifact's simulator, whose switches run at 16 GB/s",
        ),
        PoolSystem(
            name="muxserve",
            summary="as many models as MuxServe's memory rule lets in stay on each GPU; others are refused",
            system="muxserve",
            source=f"{PAPER} §7.1; its artifact MuxServe/muxserve/muxsched/placement.py",
        ),
    )
}

ADMISSION = {
    "everybody": "all requests",
    "look-ahead": "those with whom every promise is still kept if nobody else comes",
    "estimates": "those whose prompt and decoding, judged by formulas, fit the slack that is left",
}
"""Of `policies={"admission": ...}`, in a pool alone."""


def pool_system(given: str | PoolSystem, **changes: Any) -> PoolSystem:
    """A system of a pool by name, or the record itself, with some choices changed, which its name then says."""
    found = POOL_SYSTEMS[given] if isinstance(given, str) else given
    if not changes:
        return found
    own = [field for field in changes if field not in ("name", "variant")]
    name = found.name + (f", {changes['variant']}" if "variant" in changes else "")
    name += f" with own {', '.join(own)}" if own else ""
    return found.replaced(**{"name": name} | changes)


def is_pool(system: Any) -> bool:
    """Whether a system, or a name, is one of a pool."""
    return isinstance(system, PoolSystem) or (isinstance(system, str) and system in POOL_SYSTEMS)


def with_policies(system: PoolSystem, policies: Mapping[str, Any] | None) -> PoolSystem:
    """The system with the user's own admission.

    Raises:
        InputError: another decision, or a function.
    """
    for decision, value in dict(policies or {}).items():
        if decision != "admission":
            raise InputError(
                f"names {decision!r}, which {system.name} decides by rules of its own",
                "of wb.policies() a pool takes admission; its other choices are fields of wb.system(...)",
                field="policies",
            )
        if not isinstance(value, str):
            raise InputError("is a function", f"name one of {', '.join(ADMISSION)}", field="admission")
        if value not in ADMISSION:
            raise UnknownName("admission", value, ADMISSION)
        system = system.replaced(admission=value)
    return system


def pool_rows() -> list[dict[str, Any]]:
    """Rows of `wb.systems()`."""
    turns = {"aegaeon": "turns", "muxserve": "steps by turns"}
    return [
        {
            "system": one.name,
            "engine": turns.get(one.system, "whole requests"),
            "dispatch": "its own",
            "provisioning": "pool",
            "autoscaler": "",
            "tick_s": None,
            "weights": "" if one.system == "muxserve" else "host memory",
            "plan": "",
            "start_s": None,
            "cache": "" if one.system == "muxserve" else "every model on its host",
            "keep_s": None,
            "summary": one.summary,
            "source": one.source,
        }
        for one in POOL_SYSTEMS.values()
    ]
