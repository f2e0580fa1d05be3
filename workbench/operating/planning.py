"""The smallest deployment that keeps a promise, and what keeps a smaller one from it."""

import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.operating.choices import counted, find_system, listed
from workbench.operating.layout import instance_places
from workbench.operating.requests import Requests, request_table
from workbench.operating.run_handle import Run
from workbench.operating.simulating import MODELS, models_of, resolved, run_of
from workbench.operating.system_record import System
from workbench.profiles import SLO, Cluster, Deployment
from workbench.profiles import cluster as find_cluster
from workbench.profiles import slo as find_slo
from workbench.records import Record

TPS = (1, 2, 4, 8, 16)
PLENTY = 2**40
BINDS = {
    "KV": "with KV room without end it would be kept",
    "slots": "with slots and KV room without end it would be kept, with KV room alone not",
    "queue": "the same requests, evenly spaced, would be served in time: it is bursts that wait",
    "compute": "neither more KV, nor more slots, nor even arrivals would keep it: steps take too long",
}


class Plan(Record):
    """The smallest deployments.

    Attributes:
        table: one row a system and model: `system, model, tp, instances, accelerators, attainment, binds, why`; what
            binds is what one instance fewer lacks (the whole cluster, where even that does not do: `instances` is then
            empty).
        tried: every run: `system, model, tp, instances, accelerators, attainment`.
        sentence: the answer in words.
    """

    table: pl.DataFrame
    tried: pl.DataFrame
    sentence: str

    def __repr__(self) -> str:
        return f"<Plan: {self.sentence}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return f"<p style='margin:4px 0'>{html.escape(self.sentence)}</p>{self.table._repr_html_()}"


class _Try(NamedTuple):
    tp: int
    instances: int
    attainment: float

    @property
    def accelerators(self) -> int:
        return self.tp * self.instances


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
    smallest number of instances by bisection, then the deployment with fewest accelerators. What binds is found by
    running one instance fewer again with KV, slots or even arrivals given for free.

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
        of_the_run: what else `wb.simulate` takes: policies, step, kv_tokens.

    Raises:
        UserError: nothing that was to be tried can hold the model, with the arithmetic.
    """
    cluster, slo = find_cluster(cluster), find_slo(slo) if isinstance(slo, str) else slo
    if not 0 < attainment <= 1:
        raise InputError(f"is {attainment}", "give a share above 0, at most 1", field="attainment")
    table = request_table(trace)
    if not table.height:
        raise InputError("holds no requests", "give a trace with requests", field="trace")
    rows, tried = [], []
    for system in map(find_system, systems):
        for name, model in models_of(models, table).items():
            search = _Search(
                system, name, model, table.filter(pl.col("model") == name), slo, attainment, cluster, seed,
                of_the_run, progress,
            )  # fmt: skip
            best = search.smallest(deployments)
            rows.append((system.name, name, *_found(search, best)))
            tried += [
                (system.name, name, one.tp, one.instances, one.accelerators, one.attainment) for one in search.all
            ]
    columns = {"system": pl.String, "model": pl.String, "tp": pl.Int64, "instances": pl.Int64, "accelerators": pl.Int64}
    columns |= {"attainment": pl.Float64}
    found = pl.DataFrame(rows, schema=columns | {"binds": pl.String, "why": pl.String}, orient="row")
    return Plan(
        table=found,
        tried=pl.DataFrame(tried, schema=columns, orient="row"),
        sentence=_sentence(found, slo, attainment, cluster),
    )


def _found(search: "_Search", best: _Try | None) -> tuple:
    if best is None:
        most = max(search.all, key=lambda one: one.attainment)
        binds = search.binds(most.tp, most.instances)
        return most.tp, None, None, most.attainment, binds, BINDS[binds]
    if best.instances == 1:
        why = "one instance is the least there can be"
        return best.tp, 1, best.accelerators, best.attainment, "size of an instance", why
    binds = search.binds(best.tp, best.instances - 1)
    return best.tp, best.instances, best.accelerators, best.attainment, binds, BINDS[binds]


def _sentence(found: pl.DataFrame, slo: SLO, attainment: float, cluster: Cluster) -> str:
    promise = f"TTFT {float(slo.ttft_s):g} s and TBT {float(slo.tbt_s):g} s for {attainment:.0%}"
    parts = []
    for row in found.iter_rows(named=True):
        who = f"{row['system']} for {row['model']}"
        if row["instances"] is None:
            parts.append(
                f"{who} keeps it with no part of {cluster.name}: at best for {row['attainment']:.1%}, and "
                f"{row['binds']} binds"
            )
        else:
            parts.append(
                f"{who} takes {counted(row['instances'], 'instance')} of TP {row['tp']} "
                f"({counted(row['accelerators'], 'accelerator')}, kept "
                f"for {row['attainment']:.1%}); {row['binds']} binds"
            )
    return f"To keep {promise}: {listed(parts, 8)}."


class _Search:
    """Attainment of one model by deployment and number of instances; each is run once."""

    def __init__(self, system, name, model, table, slo, attainment, cluster, seed, of_the_run, progress):
        self.system, self.name, self.model, self.table, self.slo = system, name, model, table, slo
        self.share, self.cluster, self.seed = attainment, cluster, seed
        self.of_the_run, self.progress = of_the_run, progress
        self.deployments: dict[int, Deployment] = {}
        self.known: dict[tuple[int, int], float] = {}

    @property
    def all(self) -> list[_Try]:
        """Every run so far."""
        return [_Try(*key, found) for key, found in sorted(self.known.items())]

    def smallest(self, deployments: Sequence[Deployment] | None) -> _Try | None:
        """The fewest accelerators that keep the promise; of equals the one that keeps it best; None where none does."""
        best: _Try | None = None
        for deployment, places in self._possible(deployments):
            self.deployments[deployment.tp] = deployment
            most = places if best is None else min(places, best.accelerators // deployment.tp)
            if most < 1 or self._attained(deployment.tp, most) < self.share:
                continue
            low, high = 0, most
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self._attained(deployment.tp, middle) >= self.share else (middle, high)
            one = _Try(deployment.tp, high, self._attained(deployment.tp, high))
            if best is None or (one.accelerators, -one.attainment) < (best.accelerators, -best.attainment):
                best = one
        return best

    def _possible(self, deployments: Sequence[Deployment] | None) -> list[tuple[Deployment, int]]:
        """Deployments that can hold the model, with how many instances the cluster has room for."""
        tried = [Deployment(tp=tp) for tp in TPS] if deployments is None else list(deployments)
        found, refusals = [], []
        for deployment in tried:
            try:
                places = len(instance_places(self.cluster, deployment.tp))
                self._resolve(deployment, 1)
                found.append((deployment, places))
            except UserError as error:
                refusals.append(error)
        if not found:
            raise refusals[-1] if deployments else refusals[0]
        return found

    def _resolve(self, deployment: Deployment, instances: int, table: pl.DataFrame | None = None, **changes):
        system = self.system.replaced(provisioning=instances, **changes.pop("choices", {}))
        return resolved(
            system, cluster=self.cluster, models={self.name: self.model}, trace=self.table if table is None else table,
            deployment=deployment, slo=self.slo, **self.of_the_run | changes,
        )  # fmt: skip

    def _attained(self, tp: int, instances: int) -> float:
        if (tp, instances) not in self.known:
            if self.progress is not None:
                self.progress(f"{self.system.name}, {self.name}: {instances} instances of TP {tp}")
            asked = self._resolve(self.deployments[tp], instances)
            self.known[tp, instances] = share_kept(run_of(asked, seed=self.seed), self.slo)
        return self.known[tp, instances]

    def binds(self, tp: int, instances: int) -> str:
        """What this many instances lack: the first of the free gifts that keeps the promise."""
        if self.progress is not None:
            self.progress(f"{self.system.name}, {self.name}: what binds {instances} instances of TP {tp}")
        arrival_s = self.table["arrival_s"].to_numpy()
        even = pl.Series(np.linspace(arrival_s[0], arrival_s[-1], arrival_s.size))
        engine = self.system.batching
        more_slots = engine.model_copy(update={"slots": max(engine.slots, self.table.height)})
        gifts: dict[str, Mapping[str, Any]] = {
            "KV": {"kv_tokens": PLENTY},
            "slots": {"kv_tokens": PLENTY, "choices": {"engine": more_slots}},
            "queue": {"table": self.table.with_columns(arrival_s=even)},
        }
        for name, gift in gifts.items():
            run = run_of(self._resolve(self.deployments[tp], instances, **gift), seed=self.seed)
            if share_kept(run, self.slo) >= self.share:
                return name
        return "compute"


def share_kept(run: Run, slo: SLO) -> float:
    """Attainment of a promise by its own definition; 1 where no request counts."""
    kept, weight = run.kept(slo)
    total = float(weight.sum())
    return float((kept * weight).sum()) / total if total > 0 else 1.0
