"""Let a system serve a trace."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from workbench.errors import InputError, UnknownName, UserError
from workbench.operating.choices import MEANT, SYSTEMS, find_system, listed, promised
from workbench.operating.deciding import decisions
from workbench.operating.layout import Layout, lay_out
from workbench.operating.own_dispatch import simulate_asking
from workbench.operating.pool_run import PooledRun
from workbench.operating.pool_simulating import simulate_pool
from workbench.operating.pool_systems import PoolSystem, is_pool, pool_system
from workbench.operating.requests import Requests, request_table, told_hash_blocks
from workbench.operating.run_handle import Run
from workbench.operating.system_record import System
from workbench.profiles import SLO, Cluster, Deployment, Model
from workbench.profiles import cluster as find_cluster
from workbench.profiles import model as find_model
from workbench.records import shown, whole
from workbench.serving import Failure, LinkFailure, Scenario, StepForm, Update, serve
from workbench.workloads.generators.streams import Seed

BACKENDS = ("compiled", "simpy")
MODELS = Model | str | Path | Mapping[str, Model | str | Path]
PLAYS: tuple[tuple[str, Callable[[System], bool]], ...] = (
    ("mutate", lambda system: system.roles == "apart" and system.scales),
    ("requeue", lambda system: system.roles == "apart" and system.scales and system.mutate != "no"),
    ("kv_stays", lambda system: system.roles == "apart" and system.scales and system.mutate != "no"),
    ("batch_tokens", lambda system: system.roles == "apart"),
    ("promise_s", lambda system: system.live == "promise"),
    ("judged", lambda system: system.live == "promise"),
)
"""Choices that play a part only beside others: field, and whether it does."""

HANDED_ON = ("policies", "step", "kv_tokens", "failures", "updates", "link_failures", "until_s")
"""Settings that every search hands on to its runs, which are compiled."""


class Asked(NamedTuple):
    """What a run was asked for, all names resolved.

    Attributes:
        system: with the user's policies in it.
        chooser, function: a compiled dispatch function, or one that SimPy asks, or None.
        cluster, models, deployment, slo: records.
        table: the requests.
        layout: which instances serve which model.
        scenario: the same for the engine.
        notes: what a reader should know, one sentence each.
    """

    system: System
    chooser: Any
    function: Callable | None
    cluster: Cluster
    models: dict[str, Model]
    deployment: Deployment
    slo: SLO | None
    table: pl.DataFrame
    layout: Layout
    scenario: Scenario
    notes: tuple[str, ...]


def simulate(
    system: str | System | PoolSystem,
    *,
    cluster: str | Path | Cluster,
    models: MODELS,
    trace: Requests,
    deployment: Deployment | None = None,
    slo: SLO | str | None = None,
    policies: Mapping[str, str | Callable] | None = None,
    backend: str = "compiled",
    seed: Seed = 0,
    step: str | StepForm = "roofline",
    kv_tokens: int | None = None,
    failures: Sequence[Failure] = (),
    updates: Sequence[Update] = (),
    link_failures: Sequence[LinkFailure] = (),
    until_s: float = math.inf,
) -> Run | PooledRun:
    """How would a system serve these requests?

    Parameters:
        system: a name of `wb.systems()`, or a `System`; one that pools GPUs among models (aegaeon, muxserve, ...) gives
            a `PooledRun`, which has the same tables, and turns and switches beside them.
        cluster: name, path or record.
        models: one model for every name in the trace (each of them a model of its own, of this shape), or name in the
            trace -> model.
        trace: a trace, its name or path, or a table `arrival_s, prompt_tokens, output_tokens` and, where wanted,
            `request_id, model`.
        deployment: tensor parallelism and number formats; one accelerator and the models' own when None.
        slo: the promise, a record or a preset's name; `run.metrics()` then counts how well it was kept.
        policies: decision -> built-in name or function, such as {"dispatch": "two-choices"}; see `wb.policies()`. A
            function is compiled (`workbench.serving.chooser` states its signature); one that does not compile runs on
            SimPy, and a note says why.
        backend: "compiled" or "simpy"; both give the same times, bit for bit.
        seed: of random choices, which are the same for every system.
        step: where step times come from (`workbench.latency.step_time_sources()`), or coefficients of one's own.
        kv_tokens: tokens of KV that fit an instance, where they are known better than from the memory's size.
        failures: instances that stop, by their number in the order of the models.
        updates: new versions of models' weights; of systems whose instances come and go.
        link_failures: links that carry nothing for a time; of systems whose instances send each other KV or weights by
            chains.
        until_s: seconds after the first arrival at which the clock stops.

    Raises:
        UserError: what cannot be, in one sentence with the arithmetic: a model that does not fit, an MoE model, a TP
            that does not divide, more models than instances, a system that is not built.

    >>> import workbench as wb
    >>> run = wb.simulate("fixed", cluster="blitzscale-b", models="llama-3-8b", trace="azure-code-2023-like")
    >>> run.requests["status"].unique().to_list()
    ['done']
    """
    if is_pool(system):
        deployment, slo = _sound(
            deployment, slo, policies, kv_tokens, until_s, failures=failures, updates=updates,
            link_failures=link_failures,
        )  # fmt: skip
        return simulate_pool(
            pool_system(system), cluster=find_cluster(cluster), models_of=functools.partial(models_of, models),
            trace=trace, deployment=deployment, slo=slo, policies=policies,
            backend=backend, step=step, kv_tokens=kv_tokens, until_s=until_s,
            events={"failures": (*failures,), "updates": (*updates,), "link_failures": (*link_failures,)},
        )  # fmt: skip
    asked = resolved(
        system, cluster=cluster, models=models, trace=trace, deployment=deployment, slo=slo, policies=policies,
        backend=backend, step=step, kv_tokens=kv_tokens, failures=failures, updates=updates,
        link_failures=link_failures, until_s=until_s,
    )  # fmt: skip
    return run_of(asked, backend, seed)


def resolved(
    system: str | System,
    *,
    cluster: str | Path | Cluster,
    models: MODELS,
    trace: Requests,
    deployment: Deployment | None = None,
    slo: SLO | str | None = None,
    policies: Mapping[str, str | Callable] | None = None,
    backend: str = "compiled",
    step: str | StepForm = "roofline",
    kv_tokens: int | None = None,
    failures: Sequence[Failure] = (),
    updates: Sequence[Update] = (),
    link_failures: Sequence[LinkFailure] = (),
    until_s: float = math.inf,
) -> Asked:
    """Names looked up, everything checked, instances laid out; parameters as in `simulate`."""
    if backend not in BACKENDS:
        raise UnknownName("backend", backend, BACKENDS)
    deployment, slo = _sound(
        deployment, slo, policies, kv_tokens, until_s, failures=failures, updates=updates, link_failures=link_failures
    )
    choices, chooser, function, notes = decisions(_promising(find_system(system), slo), policies, backend)
    cluster = find_cluster(cluster)
    table, choices = request_table(trace), told_hash_blocks(choices, trace)
    named = models_of(models, table)
    layout = lay_out(choices, cluster, named, table, deployment, step, kv_tokens)
    scenario = Scenario(
        groups=layout.groups, dispatch=choices.dispatch, failures=tuple(failures), updates=tuple(updates),
        link_failures=tuple(link_failures), until_s=until_s, pool=layout.pool,
        network=layout.network,
    )  # fmt: skip
    return Asked(
        choices, chooser, function, cluster, named, deployment, slo, table, layout, scenario,
        (*notes, *_notes(system, choices, table, named, deployment, layout)),
    )  # fmt: skip


def _promising(system: System, slo: SLO | None) -> System:
    """The system, with the run's promise where it decides by one and has none of its own."""
    if system.live != "promise" or system.promise_s is not None or slo is None:
        return system
    told = {**system.sources, "promise_s": "the run's promise"}
    return system.model_copy(update={"promise_s": float(slo.ttft_s), "sources": told})


def _sound(
    deployment: Any, slo: Any, policies: Any, kv_tokens: Any, until_s: Any, **lists: Any
) -> tuple[Deployment, SLO | None]:
    """The deployment and the promise, looked up; they and the other settings refused where they are of no use."""
    slo = None if slo is None else promised(slo)
    deployment = Deployment() if deployment is None else deployment
    if not isinstance(deployment, Deployment):
        raise InputError(f"is {shown(deployment)}", "make one with wb.deployment(...)", field="deployment")
    if not isinstance(policies, Mapping | None):
        raise InputError(f"is {shown(policies)}", "give decision -> policy, as in {'dispatch': 'x'}", field="policies")
    if kv_tokens is not None:
        whole(kv_tokens, "kv_tokens")
    if not isinstance(until_s, int | float) or isinstance(until_s, bool) or not until_s >= 0:
        raise InputError(f"is {shown(until_s)}", "give seconds after the first arrival, 0 or more", field="until_s")
    for name, value in lists.items():
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise InputError(f"is {shown(value)}", "give a list", field=name)
    return deployment, slo


def handed_on(given: Mapping[str, Any], needed: Sequence[str] = (), others: Sequence[str] = ()) -> None:
    """Refuse settings of the runs of a search that it does not hand on to them, and such as it lacks.

    Parameters:
        given: by name.
        needed, others: names that this search takes beside `HANDED_ON`, and must be given, or may.

    Raises:
        UnknownName: another name. InputError: a needed one is missing.
    """
    for name in given:
        if name not in (*HANDED_ON, *needed, *others):
            raise UnknownName("setting of such runs", name, (*HANDED_ON, *needed, *others))
    for name in needed:
        if name not in given:
            raise InputError("is missing", "give it as for wb.simulate", field=name)


def run_of(asked: Asked, backend: str = "compiled", seed: Seed = 0) -> Run:
    """Run what was resolved; a dispatch function that did not compile is asked by SimPy."""
    if asked.function is not None:
        backend = "simpy"
        served = serve(
            asked.scenario, asked.table, seed=seed, backend=lambda lowered: simulate_asking(lowered, asked.function)
        )
    elif backend == "simpy":
        from workbench.serving.simulated.run import simulate as by_simpy

        served = serve(asked.scenario, asked.table, seed=seed, backend=by_simpy)
    else:
        served = serve(asked.scenario, asked.table, seed=seed, chooser=asked.chooser)
    return Run(
        system=asked.system,
        cluster=asked.cluster,
        models=asked.models,
        deployment=asked.deployment,
        slo=asked.slo,
        scenario=asked.scenario,
        seed=int(seed) if isinstance(seed, Integral) else int(seed.generate_state(1)[0]),
        backend=backend,
        notes=asked.notes,
        served=served.model_copy(update={"accelerators": asked.deployment.tp}),
    )


def models_of(models: MODELS, table: pl.DataFrame) -> dict[str, Model]:
    """The model behind each name in the trace, in order of appearance; one that nobody asks for is served too.

    Raises:
        UserError: a name that no model was given for.
    """
    names = table["model"].unique(maintain_order=True).to_list()
    if not isinstance(models, Mapping):
        one = find_model(models)
        return dict.fromkeys(names, one) or {one.name: one}
    unknown = [name for name in names if name not in models]
    if unknown:
        raise UserError(
            f"The trace asks for {listed(unknown)}, for which no model is given; add them to models, as in "
            f"models={{{unknown[0]!r}: wb.model(...)}}."
        )
    if not models:
        raise InputError("is empty", "give a model", field="models")
    return {name: find_model(model) for name, model in models.items()}


def _notes(
    asked: str | System, system: System, table: pl.DataFrame, named: Mapping[str, Model], deployment: Deployment,
    layout: Layout,
) -> tuple[str, ...]:  # fmt: skip
    notes = []
    if isinstance(asked, str) and asked in MEANT:
        others = [name for name in SYSTEMS if name.split("@")[0] == asked and name != MEANT[asked]]
        notes.append(f"{asked} is meant as {MEANT[asked]}; it is {listed(others)} too.")
    if "prefix_hashes" in table.columns and not system.batching.prefix_cache_tokens:
        notes.append(
            "The engine keeps no prefix cache: every prompt is computed whole; an engine with prefix_cache_tokens "
            "keeps one."
        )
    idle = [field for field, plays in PLAYS if system.sources.get(field) == "given in code" and not plays(system)]
    if idle:
        verb = "plays" if len(idle) == 1 else "play"
        notes.append(f"Of what was chosen {listed(idle)} {verb} no part in {system.name}; see wb.system(...).choices.")
    if layout.note:
        notes.append(layout.note)
    elif layout.pool is None and not deployment.colocated and (deployment.prefill or deployment.decode):
        notes.append(
            f"System {system.name} serves prompts and decodes on the same instances and keeps their number; bounds of "
            "the deployment play no part."
        )
    batched = system.roles == "apart" and system.batch_tokens is not None
    if system.autoscaler.policy == "queue" and system.limit is None and not batched:
        notes.append(
            "No instance has a limit, so that requests wait at the router only where no instance is up, and the rule "
            "queue starts no second one for them; give the system a limit."
        )
    if layout.pool is not None and layout.pool.cache_bytes == math.inf and system.path == "tiers":
        notes.append("No source states the memory of these hosts: weights stay there until their time is over.")
    length = table["prompt_tokens"] + table["output_tokens"]
    for name, model in named.items():
        longer = int(((table["model"] == name) & (length > model.max_context)).sum())
        if longer:
            notes.append(
                f"Requests of {name} that take more than the {model.max_context:,} tokens that {model.name} was made "
                f"for: {longer:,}; those that fit an instance are served as if it knew longer ones."
            )
    short = {name: need for name, need in layout.needed.items() if need > layout.instances}
    if short:
        name = next(iter(short))
        run = "run" if layout.pool is None else "may run"
        notes.append(
            f"Requests of {name} bring work for {short[name]:.3g} instances on average, and {layout.instances} {run}."
        )
    return tuple(notes)
