"""Where instances of each model go on a cluster: how many fit, how many each model gets, how fast each is."""

import functools
import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.latency import StepTime, step_time
from workbench.operating.apart import Served, groups_apart
from workbench.operating.choices import listed
from workbench.operating.growing import autoscaler_of, bounds_of, pool_of, start_up_of
from workbench.operating.serving_early import pinned_models
from workbench.operating.system_record import System
from workbench.profiles import Accelerator, Cluster, Deployment, Model, check_fits
from workbench.records import Record, shown
from workbench.serving import Engine, Group, Network, Pool, StepForm, network_on, step_form

LONGEST_FIT = 131_072
"""Tokens of context up to which step times are fitted."""


class Hosted(Record):
    """One model on one kind of accelerator: step times, and tokens whose KV fits an instance."""

    step: StepForm
    kv_tokens: int


class Layout(Record):
    """What of a cluster serves which model.

    Attributes:
        groups: for the engine, in order of the models.
        places: instances of any of the models that the cluster holds.
        needed: for each model the instances that its requests need on average, see `needed_instances`.
        pool: where instances come and go; None where their number stays.
        network: what instances send each other KV and weights over; None where they send nothing.
        note: about bounds of their number and what hosts keep, "" for none.
    """

    groups: tuple[Group, ...]
    places: int
    needed: Mapping[str, float]
    pool: Pool | None = None
    network: Network | None = None
    note: str = ""

    @property
    def instances(self) -> int:
        """How many may run at a time."""
        if self.pool is None:
            return sum(group.count for group in self.groups)
        return min(self.places, sum(min(self.places, group.autoscaler.most) for group in self.groups))


def lay_out(
    system: System,
    cluster: Cluster,
    models: Mapping[str, Model],
    requests: pl.DataFrame,
    deployment: Deployment,
    step: str | StepForm,
    kv_tokens: int | None,
) -> Layout:
    """Give each model its instances.

    Parameters:
        system: whose provisioning and engine.
        cluster, models, deployment: what runs where; models by the name that requests give.
        requests: the table, which tells the work of each model and the longest context.
        step: a source of step times (`workbench.latency.step_time_sources`), or coefficients.
        kv_tokens: in place of the tokens that the memory holds.

    Raises:
        UserError: a model that no accelerator of the cluster can hold, more models than instances, each with the
            arithmetic.
    """
    if not isinstance(step, str | StepForm):
        raise InputError(f"is {shown(step)}", "give a source of step times, or a StepForm", field="step")
    places = instance_places(cluster, deployment.tp)
    engine = system.batching
    tokens = (requests["prompt_tokens"] + requests["output_tokens"]).max() or 1
    context = int(min(max(tokens, 1024), LONGEST_FIT))
    kinds = list(dict.fromkeys(places))
    hosted = {
        name: _hosted(model, kinds, deployment, engine, context, step, kv_tokens) for name, model in models.items()
    }
    places = [kind for kind in places if any(kind in by_kind for by_kind in hosted.values())]
    span_s = float(requests["arrival_s"][-1] - requests["arrival_s"][0]) if len(requests) else 0.0
    needed = {
        name: needed_instances(requests.filter(pl.col("model") == name), span_s, next(iter(by_kind.values())), engine)
        for name, by_kind in hosted.items()
    }
    if system.roles == "apart":
        return _apart(system, cluster, models, deployment, hosted, needed, requests, len(places))
    counts = provision(system, needed, cluster, deployment, len(places))
    if system.scales:
        return _growing(system, cluster, models, deployment, hosted, needed, counts, requests, len(places))
    free, groups = list(places), []
    for name, by_kind in hosted.items():
        for kind in _taken(name, counts[name], by_kind, free):
            one = by_kind[kind]
            same = groups and groups[-1][0] == (name, kind)
            count = groups.pop()[1].count + 1 if same else 1
            group = Group(
                model=name, count=count, engine=engine, step=one.step, kv_tokens=one.kv_tokens, limit=system.limit
            )
            groups.append(((name, kind), group))
    return Layout(groups=tuple(group for _, group in groups), places=len(places), needed=needed)


def _growing(
    system: System, cluster: Cluster, models: Mapping[str, Model], deployment: Deployment,
    hosted: Mapping[str, Mapping[Accelerator, Hosted]], needed: Mapping[str, float], counts: Mapping[str, int],
    requests: pl.DataFrame, places: int,
) -> Layout:  # fmt: skip
    """One group a model in a pool of all places; at first as many as are provisioned, within the bounds."""
    pool, bounds = pool_of(system, cluster, deployment, models), bounds_of(system, deployment)
    borne = _borne(requests, needed)
    models = {name: model.with_dtype(deployment.dtype, deployment.kv_dtype) for name, model in models.items()}
    notes, groups = [bounds.note] if bounds.note else [], []
    by_model, note = _pinning(system, models, pool, cluster)
    notes += [note] if note else []
    for name, by_kind in hosted.items():
        mine = by_model[name]
        (one,) = by_kind.values()  # a pool has hosts that are alike
        groups.append(
            Group(
                model=name,
                count=max(bounds.least, min(counts[name], bounds.most)),
                engine=system.batching,
                step=one.step,
                kv_tokens=one.kv_tokens,
                limit=system.limit,
                autoscaler=autoscaler_of(system, bounds, one.step, one.kv_tokens, deployment.tp, borne[name]),
                start_up=start_up_of(mine, models[name], cluster, deployment, one.step, places),
            )
        )
    network = network_on(cluster, deployment.tp) if system.path == "chains" else None
    return Layout(
        groups=tuple(groups), places=places, needed=needed, pool=pool, network=network, note=" ".join(notes)
    )  # fmt: skip


def _apart(
    system: System, cluster: Cluster, models: Mapping[str, Model], deployment: Deployment,
    hosted: Mapping[str, Mapping[Accelerator, Hosted]], needed: Mapping[str, float], requests: pl.DataFrame,
    places: int,
) -> Layout:  # fmt: skip
    """Two groups a model in a pool of all places, also where their numbers stay."""
    pool, network = pool_of(system, cluster, deployment, models), network_on(cluster, deployment.tp)
    models = {name: model.with_dtype(deployment.dtype, deployment.kv_dtype) for name, model in models.items()}
    borne, served = _borne(requests, needed), {}
    by_model, note = _pinning(system, models, pool, cluster)
    for name, by_kind in hosted.items():
        (one,) = by_kind.values()  # a pool has hosts that are alike
        start_up = start_up_of(by_model[name], models[name], cluster, deployment, one.step, places)
        served[name] = Served(one.step, one.kv_tokens, start_up, borne[name])
    groups = groups_apart(system, deployment, cluster, network, models, served, places)
    return Layout(groups=groups, places=places, needed=needed, pool=pool, network=network, note=note)


def _pinning(
    system: System, models: Mapping[str, Model], pool: Pool, cluster: Cluster
) -> tuple[dict[str, System], str]:
    """The system as it is for each model: hosts keep no copy of one that finds no room there; and a note on these."""
    kept = pinned_models(system, models, pool, float(cluster.host.host_memory_bytes or math.inf))
    left = [name for name in models if name not in kept and system.pinned and system.path in ("multicast", "chains")]
    note = (
        f"The memory of pinned hosts has no room for {listed(left)}, which may leave it like any other." if left else ""
    )
    return {name: system.replaced(pinned=0) if name in left else system for name in models}, note


def _borne(requests: pl.DataFrame, needed: Mapping[str, float]) -> dict[str, float]:
    """Requests/s of each model that an instance bears on average."""
    arrived = dict(requests.group_by("model").len().rows())
    span_s = max(1.0, float(requests["arrival_s"][-1] - requests["arrival_s"][0])) if len(requests) else 1.0
    return {name: arrived.get(name, 0) / (need * span_s) if need * span_s > 0 else 0.0 for name, need in needed.items()}


def instance_places(cluster: Cluster, tp: int) -> list[Accelerator]:
    """The kind of accelerator of every instance that the cluster holds; an instance stays inside its host."""
    places = [group.accelerator for group in cluster.groups for _ in range(group.hosts * (group.accelerators // tp))]
    if not places:
        most = max(group.accelerators for group in cluster.groups)
        raise UserError(
            f"An instance of TP {tp} takes {tp} accelerators of one host, but hosts of {cluster.name} have at most "
            f"{most} ({most} // {tp} = 0); choose a smaller TP or another cluster."
        )
    return places


def provision(
    system: System, needed: Mapping[str, float], cluster: Cluster, deployment: Deployment, places: int
) -> dict[str, int]:
    """How many instances each model gets; by the work each brings, but at least one.

    Raises:
        UserError: more than the cluster holds, with the arithmetic.
    """
    share, models = system.provisioning, len(needed)
    if share == "average":
        wanted = {name: max(1, math.ceil(need)) for name, need in needed.items()}
        if sum(wanted.values()) <= places:
            return wanted
    each = share if isinstance(share, int) else 1
    if share == "least":
        each = bounds_of(system, deployment).least
    if models * each > places:
        raise UserError(
            f"{models} models x {each} instances x TP {deployment.tp} = {models * each * deployment.tp} accelerators, "
            f"but {cluster.name} has {cluster.accelerators}, enough for {places} instances; take fewer models, fewer "
            "instances or a larger cluster."
        )
    if share in ("one each", "least") or isinstance(share, int):
        return dict.fromkeys(needed, each)
    total = max(models, places // 2 if share == "half" else places)
    return divided(total, needed)


def divided(total: int, needed: Mapping[str, float]) -> dict[str, int]:
    """A number of instances in proportion to needs, at least one each, the largest remainders rounded up.

    >>> divided(8, {"a": 3.0, "b": 1.0, "c": 0.0})
    {'a': 5, 'b': 2, 'c': 1}
    """
    spare, work = total - len(needed), sum(needed.values())
    shares = {name: spare * (need / work if work > 0 else 1 / len(needed)) for name, need in needed.items()}
    counts = {name: 1 + math.floor(share) for name, share in shares.items()}
    order = sorted(needed, key=lambda name: math.floor(shares[name]) - shares[name])
    for name in order[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def needed_instances(requests: pl.DataFrame, span_s: float, hosted: Hosted, engine: Engine) -> float:
    """Instances of one model that would be busy on average with batches as large as slots and KV allow.

    A request takes its prompt's step and, for each further token, its share of a decoding step of a full batch; their
    sum over the trace's span (a second at least) is how many instances are needed.
    """
    if not requests.height:
        return 0.0
    prompt = np.maximum(requests["prompt_tokens"].to_numpy().astype(float), 1)
    output = requests["output_tokens"].to_numpy().astype(float)
    context = float((prompt + output / 2).mean())
    batch = max(1.0, min(engine.slots, engine.budget, hosted.kv_tokens / context))
    a_token_s = float(hosted.step.seconds(0.0, 0.0, batch * context, batch)) / batch
    chunks = np.ceil(prompt / min(engine.budget, engine.chunk))
    step, alone = hosted.step, np.ones_like(prompt)
    a_prompt_s = chunks * step.seconds(prompt / chunks, prompt**2 / chunks, 0.0, alone)
    return float((a_prompt_s + np.maximum(output - 1, 0) * a_token_s).sum()) / max(span_s, 1.0)


def _hosted(
    model: Model, kinds: list[Accelerator], deployment: Deployment, engine: Engine, context: int,
    step: str | StepForm, kv_tokens: int | None,
) -> dict[Accelerator, Hosted]:  # fmt: skip
    found, refusal = {}, None
    for kind in kinds:
        try:
            form = step if isinstance(step, StepForm) else _form(model, kind, deployment, engine, context, step)
            room = check_fits(model, kind, deployment).kv_tokens if kv_tokens is None else kv_tokens
            if room < engine.block_tokens:
                raise InputError(
                    f"of {model.name} on {kind.name} leaves {room} tokens, less than a block of {engine.block_tokens}",
                    "choose a larger TP, a smaller number format or another accelerator",
                    field="kv_tokens",
                )
            found[kind] = Hosted(step=form, kv_tokens=room)
        except UserError as error:
            refusal = refusal or error
    if not found:
        raise refusal
    return found


def _form(
    model: Model, kind: Accelerator, deployment: Deployment, engine: Engine, context: int, source: str
) -> StepForm:
    """The step times of a source in the engine's form."""
    return _fitted(step_time(model, kind, deployment, source), engine, context)


@functools.lru_cache(maxsize=64)
def _fitted(step: StepTime, engine: Engine, context: int) -> StepForm:
    """Kept, since a search asks for the same fit again and again; a profile that was calibrated anew is another one."""
    return step_form(step, min(engine.slots, 4096), min(engine.budget, LONGEST_FIT), context)


def _taken(name: str, count: int, by_kind: Mapping[Accelerator, Hosted], free: list[Accelerator]) -> list[Accelerator]:
    """The next free places that can hold a model, taken away from those that are free."""
    taken = []
    for kind in list(free):
        if kind in by_kind and len(taken) < count:
            taken.append(kind)
            free.remove(kind)
    if len(taken) < count:
        kinds = listed(kind.name for kind in by_kind)
        raise UserError(
            f"Model {name} should get {count} instances, but only {len(taken)} places are left on accelerators that "
            f"hold it ({kinds}); take fewer models or another cluster."
        )
    return taken
