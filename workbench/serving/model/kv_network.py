"""What KV caches travel over where prompts are computed on other instances than tokens, as people say it."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import field_validator

from workbench.errors import InputError
from workbench.records import Asked, NotNegative
from workbench.serving.model import lowered
from workbench.serving.model.lowered import COLOCATED, DECODE, PREFILL

if TYPE_CHECKING:
    from workbench.serving.model.scenario import Group

ROLES = {"colocated": COLOCATED, "prefill": PREFILL, "decode": DECODE}
"""Name -> number."""


class Network(Asked):
    """Links out of and into instances that send each other KV, or weights by chains; all share them max-min fairly.

    Attributes:
        egress_bytes_per_s, ingress_bytes_per_s: of an instance: one number for all, or one for each group; infinity for
            a link that never binds.
        host_egress_bytes_per_s: out of a host's memory, where that sends weights.
        latency_s: the least time that a transfer takes.

    >>> Network(egress_bytes_per_s=50e9, ingress_bytes_per_s=(25e9, 50e9)).latency_s
    0.0
    """

    egress_bytes_per_s: float | tuple[float, ...] = math.inf
    ingress_bytes_per_s: float | tuple[float, ...] = math.inf
    host_egress_bytes_per_s: float = math.inf
    latency_s: NotNegative = 0.0

    @field_validator("egress_bytes_per_s", "ingress_bytes_per_s", "host_egress_bytes_per_s")
    @classmethod
    def _rates(cls, given: float | tuple[float, ...]):
        for value in given if isinstance(given, tuple) else (given,):
            if not value > 0:
                raise ValueError(f"is {value}; give a rate above 0, or infinity")
        return given


def network_of(
    given: Network | None, groups: Sequence["Group"], rows: Sequence[int], names: Sequence[str], hosts: int
) -> lowered.Network | None:
    """Links of every instance and host, and KV of every model; None where nothing is sent over them.

    Parameters:
        given: as the scenario has it.
        groups: in the order of the rates of `given`.
        rows: the position in `groups` of each instance.
        names: of all models, in the order of their numbers.
        hosts: of the pool, 0 without one.

    Raises:
        InputError: roles that do not go together, no network, no size of KV, or rates that are not one a group.
    """
    for model in dict.fromkeys(group.model for group in groups):
        _check_roles(model, {group.role for group in groups if group.model == model})
    sends_kv = any(group.role != "colocated" for group in groups)
    if not sends_kv and all(group.start_up.weights.path != "chains" for group in groups):
        return None
    if given is None:
        what = "KV is" if sends_kv else "weights are"
        raise InputError(f"is missing, but {what} sent between instances", "add one to the scenario", field="network")
    rates = [_each(getattr(given, f"{way}_bytes_per_s"), way, groups, rows) for way in ("egress", "ingress")]
    kv_bytes = np.array([_kv_bytes(name, groups) for name in names])
    return lowered.Network(*rates, given.latency_s, kv_bytes, np.full(hosts, given.host_egress_bytes_per_s))


def _check_roles(model: str, roles: set[str]) -> None:
    if len(roles) > 1 and "colocated" in roles:
        both = " and ".join(sorted(roles))
        raise InputError(f"of model {model!r} are {both}", "let all do both phases, or none", field="role")
    if len(roles) == 1 and "colocated" not in roles:
        missing = "decode" if "prefill" in roles else "prefill"
        raise InputError(f"of model {model!r} are all {roles.pop()}", f"add a group with role {missing}", field="role")


def _each(rate: float | tuple[float, ...], way: str, groups: Sequence["Group"], rows: Sequence[int]) -> np.ndarray:
    """float64[N] from one number or one a group."""
    if not isinstance(rate, tuple):
        return np.full(len(rows), rate)
    if len(rate) != len(groups):
        raise InputError(
            f"has {len(rate)} numbers for {len(groups)} groups", "give one each", field=f"{way}_bytes_per_s"
        )
    return np.array(rate, float)[list(rows)]


def _kv_bytes(model: str, groups: Sequence["Group"]) -> float:
    """Bytes of a token's KV; 0 for a model that sends none."""
    mine = [group for group in groups if group.model == model and group.role != "colocated"]
    stated = {group.kv_bytes_per_token for group in mine if group.kv_bytes_per_token is not None}
    if not mine:
        return 0.0
    if len(stated) != 1:
        found = " and ".join(f"{value:g}" for value in sorted(stated))
        problem = f"of model {model!r} is {found}" if stated else f"of model {model!r} is missing"
        raise InputError(problem, "give one number, the bytes of a token's KV", field="kv_bytes_per_token")
    return stated.pop()
