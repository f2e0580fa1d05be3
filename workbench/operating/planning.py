"""The smallest deployment that keeps a promise, and what keeps a smaller one from it."""

import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from workbench.errors import InputError, UserError
from workbench.operating.apart_search import ApartSearch
from workbench.operating.choices import counted, find_system, listed, promised
from workbench.operating.requests import Requests, request_table, told_hash_blocks
from workbench.operating.scaling_rule import rule_of
from workbench.operating.simulating import MODELS, handed_on, models_of
from workbench.operating.size_search import BINDS, Search, Try
from workbench.operating.system_record import System
from workbench.profiles import SLO, Cluster, Deployment
from workbench.profiles import cluster as find_cluster
from workbench.records import Record, check_watching, share, shown


class Plan(Record):
    """The smallest deployments.

    Attributes:
        table: one row a system and model, or a system and all the models that share its places: `system, model, tp,
            instances, accelerators, attainment, gpu_allocated_s, gpu_active_s, peak_gpus, prefill, decode, binds, why`.
            Instances and accelerators are the most there may be, prefill and decode how many of these compute prompts
            and decode where they are kept apart; what binds is what the next smaller size lacks (the whole cluster,
            where even that does not do: `instances` is then empty; where it is told beforehand that nothing can do, the
            costs are empty too, and the attainment is the most that there could be).
        tried: every run: the same columns without the last two.
        sentence: the answer in words.
    """

    table: pl.DataFrame
    tried: pl.DataFrame
    sentence: str

    def __repr__(self) -> str:
        return f"<Plan: {self.sentence}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        table = self.table  # whose last column is as long as the others together
        reasons = zip(*(table[name] for name in ("system", "model", "binds", "why")), strict=True)
        below = "".join(f"<li>{html.escape(f'{system}, {model}: {binds}; {why}')}</li>"
                        for system, model, binds, why in reasons if why)  # fmt: skip
        said = html.escape(self.sentence)
        return f"<p style='margin:4px 0'>{said}</p>{table.drop('why')._repr_html_()}<ul>{below}</ul>"


def plan(
    trace: Requests,
    *,
    slo: SLO | str,
    cluster: str | Path | Cluster,
    models: MODELS,
    attainment: float = 0.9,
    systems: Sequence[str | System] = ("fixed",),
    deployments: Sequence[Deployment] | None = None,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
    **of_the_run: Any,
) -> Plan:
    """How few accelerators keep the promise on this trace, and what do fewer of them lack?

    Each model of a fixed system has instances of its own, so each is planned by itself: for every deployment the
    smallest number of instances by bisection (more of them are taken to keep it no worse), then the deployment with
    fewest accelerators. Of a system that scales the most instances that it may have are searched for, with several
    models, which share their places, the number of hosts; the GPU time that it takes and the most GPUs that it held
    at a time are its cost. Of a system that keeps prompts and decoding apart all pairs of numbers are run, up to
    the least sum that will do, and of equal sums the pair that keeps the promise best is taken: there, more of one
    kind may keep it worse. A deployment of which even idle instances are too slow for the share asked for (see
    `workbench.operating.least_times.bound_of`) is not run at all. What binds is found by running the next smaller size
    again with KV, slots, starts, instances or even arrivals given for free.

    Parameters:
        trace: what arrives.
        slo: the promise.
        cluster: what there is at most.
        models: as in `wb.simulate`.
        attainment: share that must be kept, by the promise's definition.
        systems: those to plan; their provisioning is what is searched for.
        deployments: those to try; by default every TP that divides the model and fits a host.
        seed: of random choices.
        progress: told in words how far the work is.
        of_the_run: what else the runs take, as `wb.simulate` does: policies, step, kv_tokens, failures, ... Instances
            and hosts that a smaller deployment does not have do not fail in it; those of a fixed system are counted for
            each model by itself.

    Raises:
        UserError: nothing that was to be tried can hold the model, with the arithmetic; several models for a system
            that keeps prompts and decoding apart.
    """
    cluster, slo = find_cluster(cluster), promised(slo)
    check_watching(progress)
    handed_on(of_the_run)
    if share(attainment, "attainment") == 0:
        raise InputError(f"is {attainment}", "give a share above 0, at most 1", field="attainment")
    if isinstance(systems, str) or not isinstance(systems, Sequence) or not systems:
        raise InputError(f"is {shown(systems)}", "give a list of systems", field="systems")
    if deployments is not None:
        given = isinstance(deployments, Sequence) and all(isinstance(one, Deployment) for one in deployments)
        if not given or not deployments:
            raise InputError(f"is {shown(deployments)}", "give a list of wb.deployment(...)", field="deployments")
    table = request_table(trace)
    if not table.height:
        raise InputError("holds no requests", "give a trace with requests", field="trace")
    rows, tried, scaling = [], [], set()
    policies = dict(of_the_run.pop("policies", None) or {})
    rule = policies.pop("autoscaler", None)
    for system in map(find_system, systems):
        system = told_hash_blocks(system, trace)
        system = system if rule is None else system.replaced(autoscaler=rule_of(rule))
        named, apart = models_of(models, table), system.roles == "apart"
        if apart and len(named) > 1:
            raise UserError(
                f"System {system.name!r} keeps prompts and decoding apart, and its models share their places: two "
                f"numbers would have to be found for each of {listed(named)}; plan for one model at a time."
            )
        parts = [named] if system.scales else [{name: model} for name, model in named.items()]
        scaling |= {system.name} if system.scales else set()
        for part in parts:
            search = (ApartSearch if apart else Search)(
                system, part, table.filter(pl.col("model").is_in(list(part))), slo, attainment, cluster, seed,
                {**of_the_run, "policies": policies}, progress,
            )  # fmt: skip
            best, name = search.smallest(deployments), listed(part)
            rows.append((system.name, name, *_found(search, best)))
            tried += [(system.name, name, *_numbers(one)) for one in search.all]
    found = pl.DataFrame(rows, schema=COLUMNS | {"binds": pl.String, "why": pl.String}, orient="row")
    return Plan(
        table=found,
        tried=pl.DataFrame(tried, schema=COLUMNS, orient="row"),
        sentence=_sentence(found, scaling, slo, attainment, cluster),
    )


COLUMNS = {
    "system": pl.String, "model": pl.String, "tp": pl.Int64, "instances": pl.Int64, "accelerators": pl.Int64,
    "attainment": pl.Float64, "gpu_allocated_s": pl.Float64, "gpu_active_s": pl.Float64, "peak_gpus": pl.Float64,
    "prefill": pl.Int64, "decode": pl.Int64,
}  # fmt: skip


def _numbers(one: Try) -> tuple:
    return one.tp, one.instances, one.accelerators, *one[2:]


def _found(search: Search, best: Try | None) -> tuple:
    if best is None and not search.known:
        tp, bound = max(search.hopeless.items(), key=lambda one: (one[1].share, -one[1].ttft_s, -one[1].tbt_s))
        why = (
            f"even on idle instances of TP {tp} at most {bound.share:.1%} of the requests can, and {search.share:.0%} "
            f"need a TTFT of {bound.ttft_s:.3g} s and a TBT of {bound.tbt_s:.3g} s at least"
        )
        return tp, None, None, bound.share, *[None] * 5, "compute", why
    if best is None:
        most = max(search.all, key=lambda one: one.attainment)
        binds = search.binds(most.tp, search.size_of(most))
        return most.tp, None, None, *most[2:], binds, BINDS[binds]
    below = search.below(best)
    if below is None:
        why = "one instance is the least there can be" if best.instances == 1 else "it is the least there can be"
        return *_numbers(best), "size of an instance", why
    binds = search.binds(best.tp, below)
    return *_numbers(best), binds, BINDS[binds]


def _sentence(found: pl.DataFrame, scaling: set[str], slo: SLO, attainment: float, cluster: Cluster) -> str:
    promise = f"TTFT {float(slo.ttft_s):g} s and TBT {float(slo.tbt_s):g} s for {attainment:.0%}"
    parts = []
    for row in found.iter_rows(named=True):
        who = f"{row['system']} for {row['model']}"
        if row["peak_gpus"] is None:
            parts.append(f"{who} keeps it with no part of {cluster.name}: {row['why']}")
        elif row["instances"] is None:
            parts.append(
                f"{who} keeps it with no part of {cluster.name}: at best for {row['attainment']:.1%}, and "
                f"{row['binds']} binds"
            )
        else:
            scaled = row["system"] in scaling
            cost = f", {row['gpu_allocated_s'] / 3600:.3g} GPU hours" if scaled else ""
            roles = "" if row["decode"] is None else f"{row['prefill']} for prompts and {row['decode']} that decode, "
            parts.append(
                f"{who} takes {'up to ' if scaled else ''}{counted(row['instances'], 'instance')} of TP {row['tp']} "
                f"({roles}{counted(row['accelerators'], 'accelerator')}{cost}, kept for {row['attainment']:.1%}); "
                f"{row['binds']} binds"
            )
    return f"To keep {promise}: {listed(parts, 8)}."
