"""What a system's name stands for: one set of choices, and the tables of systems and of policies."""

from collections.abc import Iterable
from typing import Any

import polars as pl

from workbench.chains.policy import CHOOSES
from workbench.errors import InputError, UnknownName, UserError
from workbench.operating.pool_systems import ADMISSION, POOL_SYSTEMS, PoolSystem, is_pool, pool_rows, pool_system
from workbench.operating.scaling_rule import RULES
from workbench.operating.scaling_systems import SCALING_SYSTEMS
from workbench.operating.system_record import CHOICES, System
from workbench.profiles import SLO
from workbench.profiles import slo as find_slo
from workbench.records import shown
from workbench.serving import ROUTES
from workbench.serving.policy.scalers import PARAMETERS, SCALERS

DISPATCH: dict[str, str] = {
    "round-robin": "one instance after the other",
    "least-outstanding": "the instance with fewest requests queued or running",
    "random": "any of them",
    "least-tokens": "the instance with fewest tokens still to process",
    "two-choices": "of two drawn at random the one with fewer requests",
    "first-free": "the first that takes it",
}


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
        *SCALING_SYSTEMS,
    )
}

MEANT = {"serverlessllm": "serverlessllm@blitzscale"}
"""A name without a variant -> the system that is meant."""

NOT_BUILT = ("chains", "blendserve")
"""Names of systems that are described and not built; `@` and a variant may follow."""


def promised(slo: SLO | str) -> SLO:
    """A promise by its preset's name, or the record itself.

    Raises:
        InputError: it is neither. UnknownName: no such preset.
    """
    if isinstance(slo, str):
        return find_slo(slo)
    if not isinstance(slo, SLO):
        raise InputError(f"is {shown(slo)}", "make one with wb.slo(...)", field="slo")
    return slo


def find_system(system: str | System) -> System:
    """A system by name, or the record itself.

    Raises:
        UserError: a system that is not built yet, or is a pool. UnknownName: no such system.
    """
    if isinstance(system, System):
        return system
    if not isinstance(system, str):
        raise UnknownName("system", shown(system), SYSTEMS)
    name = MEANT.get(system, system)
    if name not in SYSTEMS and (name in NOT_BUILT or name.split("@")[0] in NOT_BUILT):
        raise UserError(f"System {system!r} is not built yet; choose one of {', '.join(SYSTEMS)}.")
    if name in POOL_SYSTEMS:
        raise UserError(
            f"System {system!r} is a pool of models: wb.simulate and wb.compare take it, wb.capacity and wb.plan do "
            f"not; choose one of {', '.join(SYSTEMS)}."
        )
    if name not in SYSTEMS:
        raise UnknownName("system", system, {**SYSTEMS, **MEANT, **POOL_SYSTEMS})
    return SYSTEMS[name]


def system(given: str | System | PoolSystem, /, **changes: Any) -> System | PoolSystem:
    """A system by name, with some of its choices changed, which its own name then says unless it is given another one;
    `.choices` shows them all with their sources.

    Parameters:
        given: a name of `wb.systems()`, or a system.
        changes: fields of `System`, or of a pool (`workbench.operating.pool_systems`).
            `variant="artifact"` takes the artifact's rules where they differ from the paper's.

    Raises:
        UnknownName, UserError: no such system; a choice that it does not have, or that does not go with the others.

    >>> system("serverlessllm@blitzscale", variant="artifact").cache_ttl_s
    30.0
    """
    if is_pool(given):
        return pool_system(given, **changes)
    found = find_system(given)
    if not changes:
        return found
    own = [field for field in changes if field in CHOICES]
    name = found.name + (", artifact" if changes.get("variant") == "artifact" else "")
    name += f" with own {listed(own, 4)}" if own else ""
    return found.replaced(**{"name": name} | changes)


def systems() -> pl.DataFrame:
    """All systems, one row each: how instances batch, who gets a request, how many instances there are, where the
    weights of a new one come from and by which plan, how long it starts beside them, what hosts keep."""
    return pl.DataFrame(
        [
            {
                "system": one.name,
                "engine": str(one.engine),
                "dispatch": one.dispatch,
                "provisioning": str(one.provisioning),
                "autoscaler": str(one.autoscaler) if one.scales else "",
                "tick_s": one.tick_s if one.scales else None,
                "weights": one.path if one.scales else "",
                "plan": one.schedule if one.scales and one.path == "multicast" else "",
                "start_s": one.engine_start.seconds + one.warm_up.seconds if one.scales else None,
                "cache": _cache_of(one),
                "keep_s": one.keep_s if one.scales else None,
                "summary": one.summary,
                "source": one.source,
            }
            for one in SYSTEMS.values()
        ]
        + pool_rows(),
        infer_schema_length=None,
    )


def _cache_of(one: System) -> str:
    """What a system keeps in the memory of hosts, in words."""
    if not one.scales or one.path not in ("tiers", "all-cached", "multicast", "chains"):
        return ""
    if one.path == "all-cached":
        return "every model on every host"
    room = "a host's memory" if one.cache_bytes is None else f"{one.cache_bytes:g} bytes a host"
    return "none" if one.cache_bytes == 0 else f"{room}, {one.cache_ttl_s:g} s unused"


def policies() -> pl.DataFrame:
    """All built-in policies: the decision (a key of `policies=`), the name, what it chooses, and its parameters, which
    are worked out for each model where they are not given.

    Those of *chains* are for `workbench.chains.dispatch_path` and its SimPy and real twins: `wb.simulate` knows no
    server chains. Those of *admission* are for systems that pool GPUs among models.
    """
    rows = [("dispatch", name, DISPATCH[name], "") for name in ROUTES]
    rows += [("autoscaler", name, text, ", ".join(PARAMETERS[SCALERS[name]])) for name, text in RULES.items()]
    rows += [("chains", name, text, "") for name, text in CHOOSES.items()]
    rows += [("admission", name, text, "") for name, text in ADMISSION.items()]
    return pl.DataFrame(rows, schema=["decision", "policy", "chooses", "parameters"], orient="row")


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
