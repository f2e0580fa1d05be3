"""What a system's name stands for: one set of choices, and the tables of systems and of policies."""

from collections.abc import Iterable
from typing import Literal

import polars as pl
from pydantic import Field, field_validator

from workbench.errors import UnknownName, UserError
from workbench.records import Asked, AtLeastOne, shown
from workbench.serving import ENGINES, ROUTES, Engine

Share = Literal["full", "half", "average", "one each"]

PROVISIONING: dict[str, str] = {
    "full": "all instances that the cluster holds, divided among the models by the work each brings",
    "half": "half of them",
    "average": "for each model as many as its requests need on average over the trace",
    "one each": "each model has one instance of its own",
}

DISPATCH: dict[str, str] = {
    "round-robin": "one instance after the other",
    "least-outstanding": "the instance with fewest requests queued or running",
    "random": "any of them",
    "least-tokens": "the instance with fewest tokens still to process",
    "two-choices": "of two drawn at random the one with fewer requests",
    "first-free": "the first that takes it",
}


class System(Asked):
    """One set of choices; `replaced` makes a hybrid.

    Attributes:
        name, summary: what it is called and what it does.
        engine: how an instance batches: a name of `workbench.serving.ENGINES`, or an `Engine`.
        dispatch: how the router chooses, a name of `wb.policies()`.
        provisioning: how many instances run, see `PROVISIONING`; a whole number is that many for each model.
        limit: most requests that the router gives one instance at a time; None for no limit.
        source: who does it so.
    """

    name: str = Field(min_length=1)
    summary: str = ""
    engine: str | Engine = "continuous"
    dispatch: str = "least-outstanding"
    provisioning: Share | AtLeastOne = "full"
    limit: AtLeastOne | None = None
    source: str = "given in code"

    @field_validator("engine")
    @classmethod
    def _engine_is_known(cls, engine: str | Engine) -> str | Engine:
        if isinstance(engine, str) and engine not in ENGINES:
            raise UnknownName("engine", engine, ENGINES)
        return engine

    @field_validator("dispatch")
    @classmethod
    def _dispatch_is_known(cls, name: str) -> str:
        if name not in ROUTES:
            raise UnknownName("dispatch policy", name, ROUTES)
        return name

    @property
    def batching(self) -> Engine:
        """The engine's settings."""
        return ENGINES[self.engine] if isinstance(self.engine, str) else self.engine

    def replaced(self, **changes) -> "System":
        """The same but for some choices.

        >>> find_system("fixed").replaced(dispatch="random", provisioning=3).provisioning
        3
        """
        return System(**{field: getattr(self, field) for field in System.model_fields} | changes)


_USUAL = "fixed provisioning, the baseline of BlitzScale (OSDI'25 §6) and λScale; sizes of the engine are chosen"

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        System(name="fixed", summary="all of the cluster serves all the time", source=_USUAL),
        System(
            name="fixed@half", summary="half of the cluster serves all the time", provisioning="half", source=_USUAL
        ),
        System(
            name="fixed@average",
            summary="as many instances as the trace needs on average serve all the time",
            provisioning="average",
            source=_USUAL,
        ),
        System(
            name="dedicated",
            summary="each model has one instance of its own, whether it is asked for or not",
            provisioning="one each",
            source="the case against which Aegaeon (SOSP'25) pools GPUs; sizes of the engine are chosen",
        ),
    )
}

NOT_BUILT = (
    "ideal", "blitzscale", "serverlessllm", "allcache", "nccl", "faasnet", "lambdascale", "aegaeon", "muxserve",
    "chains", "blendserve",
)  # fmt: skip
"""Names of systems that are described and not built; `@` and a variant may follow."""


def find_system(system: str | System) -> System:
    """A system by name, or the record itself.

    Raises:
        UserError: a system that is not built yet. UnknownName: no such system.
    """
    if isinstance(system, System):
        return system
    if isinstance(system, str) and system not in SYSTEMS and system.split("@")[0] in NOT_BUILT:
        raise UserError(f"System {system!r} is not built yet; choose one of {', '.join(SYSTEMS)}.")
    if not isinstance(system, str) or system not in SYSTEMS:
        raise UnknownName("system", system if isinstance(system, str) else shown(system), SYSTEMS)
    return SYSTEMS[system]


def systems() -> pl.DataFrame:
    """All systems, one row each: name, engine, dispatch, provisioning, what it does, who does it so."""
    return pl.DataFrame(
        [
            {
                "system": system.name,
                "engine": str(system.engine),
                "dispatch": system.dispatch,
                "provisioning": str(system.provisioning),
                "summary": system.summary,
                "source": system.source,
            }
            for system in SYSTEMS.values()
        ]
    )


def policies() -> pl.DataFrame:
    """All built-in policies: the decision (a key of `policies=`), the name, and what it chooses."""
    return pl.DataFrame(
        [("dispatch", name, DISPATCH[name]) for name in ROUTES],
        schema=["decision", "policy", "chooses"],
        orient="row",
    )


def counted(count: int, what: str) -> str:
    """A number of things in words.

    >>> counted(1, "instance"), counted(16, "instance")
    ('1 instance', '16 instances')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Names in a sentence, cut after some.

    >>> listed("abcdefg", 3)
    'a, b, c and 4 more'
    """
    names = list(names)
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
