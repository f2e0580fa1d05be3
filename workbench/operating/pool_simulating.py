"""Let a pool of GPUs that many models share serve a trace: what `simulate` asks, in the pooling engine's words."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from workbench.errors import InputError, UnknownName
from workbench.operating.pool_run import PooledRun
from workbench.operating.pool_systems import PoolSystem, with_policies
from workbench.operating.requests import Requests, request_table
from workbench.pooling import Pooling, PoolModel, lower, pool_model, pooling_on
from workbench.pooling.model import PoolRun, facts, run_compiled
from workbench.pooling.model.pooling import BLOCK_TOKENS
from workbench.pooling.policy.names import SYSTEMS, TURNS
from workbench.profiles import SLO, Cluster, Deployment, Model
from workbench.records import shown, whole

PROMPT_SHARE = 0.375
"""Of a pool's instances that process prompts: 6 of 16 in the paper (SOSP'25 §7.2)."""

PROMISED = (10.0, 0.1)
"""Seconds to the first token and between tokens that quotas aim at where no promise is given (SOSP'25 §7.1)."""

EVENTS = {"failures": "instances that fail", "updates": "new weights", "link_failures": "links that fail"}


def simulate_pool(
    system: PoolSystem,
    *,
    cluster: Cluster,
    models_of: Callable[[pl.DataFrame], Mapping[str, Model]],
    trace: Requests,
    deployment: Deployment,
    slo: SLO | None,
    policies: Mapping[str, Any] | None,
    backend: str,
    step: Any,
    kv_tokens: int | None,
    events: Mapping[str, Sequence],
    until_s: float,
) -> PooledRun:
    """How would a pool serve these requests?

    Parameters:
        as for `workbench.operating.simulate`, names looked up; `events` are its `EVENTS`; `models_of` tells the model
            behind each name of the table of requests.

    Raises:
        InputError: what a pool does not know, each in one sentence: instances that fail, a clock that stops, bounds of
            instances, step times of one's own, a cluster without PCIe, a model that fits no instance.
    """
    if kv_tokens is not None:
        whole(kv_tokens, "kv_tokens", BLOCK_TOKENS)
    _known(system, deployment, backend, step, events, until_s)
    system, table = with_policies(system, policies), request_table(trace)
    named = dict(models_of(table))
    pooling, notes = _pooling(system, cluster, deployment, slo, table)
    kinds: dict[Model, PoolModel] = {}
    for model in named.values():
        if model not in kinds:
            kinds[model] = _pool_model(model, system, cluster, deployment, step, kv_tokens)
    lowered = lower(pooling, {name: kinds[model] for name, model in named.items()}, table)
    if backend == "simpy":
        from workbench.pooling.simulated import simulate as engine
    else:
        engine = run_compiled
    return PooledRun(
        system=system,
        cluster=cluster,
        models=named,
        deployment=deployment,
        slo=slo,
        pooling=pooling,
        backend=backend,
        notes=notes,
        served=PoolRun(asked=table, lowered=lowered, outcome=engine(lowered), models=tuple(named)),
    )


def _known(
    system: PoolSystem, deployment: Deployment, backend: str, step: Any, events: Mapping[str, Sequence], until_s: float
) -> None:
    """Refuse what a pool does not know."""
    if backend not in ("compiled", "simpy"):
        raise UnknownName("backend", backend, ("compiled", "simpy"))
    for wrong, field, problem, remedy in (
        *(
            (bool(given), field, f"names {EVENTS[field]}, which a pool does not know", "leave it out")
            for field, given in events.items()
        ),
        (until_s != math.inf, "until_s", "stops the clock, while a pool serves to the end", "leave it out"),
        (
            deployment.prefill is not None or deployment.decode is not None,
            "deployment",
            f"bounds instances, while {system.name} keeps all of the cluster",
            "leave the bounds out; wb.system(name, prefill=...) says how many of them process prompts",
        ),
        (
            not isinstance(step, str),
            "step",
            f"is {shown(step)}, while a pool takes step times by name",
            "name one of workbench.latency.step_time_sources()",
        ),
    ):
        if wrong:
            raise InputError(problem, remedy, field=field)


def _pooling(
    system: PoolSystem, cluster: Cluster, deployment: Deployment, slo: SLO | None, table: pl.DataFrame
) -> tuple[Pooling, tuple[str, ...]]:
    """The pool on this cluster, and what a reader should know of it."""
    notes = []
    instances = cluster.accelerators // deployment.tp
    if instances == 0:
        problem = f"is {deployment.tp}, and {cluster.name} has {cluster.accelerators} accelerators"
        raise InputError(problem, "use fewer an instance", field="tp")
    turns = SYSTEMS[system.system] == TURNS
    nodes = cluster.hosts if turns and cluster.hosts * 2 <= instances and instances % cluster.hosts == 0 else 1
    if system.variant == "simulator":
        nodes = 1
    if turns and instances < 2:
        problem = f"has room for {instances} instance of {deployment.tp}"
        raise InputError(problem, f"give {system.name} two: one for prompts, one to decode", field="cluster")
    if system.prefill is not None:
        prefill = system.prefill
    else:
        prefill = min(nodes * max(1, round(PROMPT_SHARE * instances / nodes)), instances - nodes) if turns else 0
    if prefill >= instances:
        raise InputError(f"is {prefill} of {instances} instances", f"leave at least {nodes} to decode", field="prefill")
    changes = {"nodes": nodes, "prefill": prefill, "decode": instances - prefill, "accelerators": deployment.tp}
    if slo is None:
        notes.append(
            f"No promise was given: turns aim at {PROMISED[0]:g} s to the first token and {PROMISED[1]:g} s between "
            "tokens, as in the paper; give slo=wb.slo(...) for another."
        )
    promise = PROMISED if slo is None else (float(slo.ttft_s), float(slo.tbt_s))
    changes |= {"ttft_s": promise[0], "tbt_s": promise[1], "system": system.system}
    if system.variant == "simulator":  # there every model tells what of the memory is left to it; these do not
        share = float(facts().variants[system.variant].memory_fraction)
        changes["memory_bytes"] = share * deployment.tp * float(cluster.accelerator.memory_bytes)
    if "prefix_hashes" in table.columns:
        notes.append("A pool keeps no prefix cache: every prompt is computed whole.")
    return pooling_on(cluster, system.variant, **{**changes, **system.changes}), tuple(notes)


def _pool_model(
    model: Model, system: PoolSystem, cluster: Cluster, deployment: Deployment, step: str, kv_tokens: int | None
) -> PoolModel:
    """A model's numbers on an instance; sizes are the model's own whatever the variant, which knows three alone."""
    shape = model.with_dtype(deployment.dtype, deployment.kv_dtype)
    rules = facts().variants["paper"]
    made = pool_model(shape, cluster.accelerator, deployment.tp, step, rules)
    if kv_tokens is not None:
        made = made.model_copy(update={"kv_bytes": kv_tokens * made.kv_bytes_per_token})
    return made
