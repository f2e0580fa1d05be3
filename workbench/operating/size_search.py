"""Attainment of a system by its size, each size run once, and what the size below the smallest one lacks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from workbench.errors import UserError
from workbench.operating.growing import bounds_of
from workbench.operating.layout import instance_places
from workbench.operating.least_times import Bound, bound_of
from workbench.operating.run_handle import Run
from workbench.operating.simulating import Asked, resolved, run_of
from workbench.operating.system_record import System
from workbench.profiles import SLO, Cluster, Deployment, Model

TPS = (1, 2, 4, 8, 16)
PLENTY = 2**40
HAPPENINGS = ("failures", "link_failures", "updates")
BINDS = {
    "KV": "with KV room without end it would be kept",
    "slots": "with slots and KV room without end it would be kept, with KV room alone not",
    "start-up": "with starts that take no time it would be kept",
    "autoscaling": "with all instances there all the time it would be kept, with starts that take no time not",
    "failures": "without failures and new weights it would be kept",
    "queue": "the same requests, evenly spaced, would be served in time: it is bursts that wait",
    "compute": "neither more KV, nor more slots, nor even arrivals would keep it: steps take too long",
}


Size = int | tuple[int, int]
"""How many instances, or how many that compute prompts and how many that decode."""


class Try(NamedTuple):
    """One size that was run: how well it kept the promise, and what it took; with roles apart, how many of each."""

    tp: int
    instances: int
    attainment: float
    gpu_allocated_s: float
    gpu_active_s: float
    peak_gpus: float
    prefill: int | None = None
    decode: int | None = None

    @property
    def accelerators(self) -> int:
        """The most that may be held."""
        return self.tp * self.instances


class Search:
    """The sizes of one system for some models, and what became of each that was run.

    The size of a system whose instances stay is how many one model has. Where they come and go it is the most that one
    model may have, or, where several share the places, all that whole hosts hold.
    """

    def __init__(
        self, system: System, models: Mapping[str, Model], table: pl.DataFrame, slo: SLO, attainment: float,
        cluster: Cluster, seed: int, of_the_run: Mapping[str, Any], progress: Callable[[str], object] | None,
    ):  # fmt: skip
        """Nothing has run yet; parameters as of `workbench.operating.planning.plan`."""
        self.system, self.models, self.table, self.slo = system, models, table, slo
        self.share, self.cluster, self.seed = attainment, cluster, seed
        self.of_the_run, self.progress = of_the_run, progress
        self.deployments: dict[int, Deployment] = {}
        self.known: dict[tuple[int, Size], Try] = {}
        self.hopeless: dict[int, Bound] = {}

    @property
    def all(self) -> list[Try]:
        """Every run so far."""
        return [one for _, one in sorted(self.known.items())]

    def smallest(self, deployments: Sequence[Deployment] | None) -> Try | None:
        """The fewest accelerators that keep the promise; of equals the one that keeps it best; None where none does."""
        best: Try | None = None
        for deployment, sizes in self._possible(deployments):
            self.deployments[deployment.tp] = deployment
            most = sizes[-1] if best is None else best.accelerators // deployment.tp
            sizes = [size for size in sizes if size <= most]
            if not sizes or self._tried(deployment.tp, sizes[-1]).attainment < self.share:
                continue
            low, high = -1, len(sizes) - 1
            while high - low > 1:
                middle = (low + high) // 2
                kept = self._tried(deployment.tp, sizes[middle]).attainment >= self.share
                low, high = (low, middle) if kept else (middle, high)
            one = self._tried(deployment.tp, sizes[high])
            if best is None or (one.accelerators, -one.attainment) < (best.accelerators, -best.attainment):
                best = one
        return best

    def size_of(self, one: Try) -> Size:
        """The size that was run."""
        return one.instances

    def below(self, one: Try) -> Size | None:
        """The next smaller size; None where there is none."""
        smaller = [size for size in self._sizes(self.deployments[one.tp]) if size < one.instances]
        return smaller[-1] if smaller else None

    def binds(self, tp: int, size: Size) -> str:
        """What a size lacks: the first of the free gifts that keeps the promise."""
        if self.progress is not None:
            self.progress(f"{self._who}: what binds {self._described(tp, size)}")
        arrival_s = self.table["arrival_s"].to_numpy()
        even = pl.Series(np.linspace(arrival_s[0], arrival_s[-1], arrival_s.size))
        engine = self.system.batching
        more_slots = engine.model_copy(update={"slots": max(engine.slots, self.table.height)})
        gifts: dict[str, Mapping[str, Any]] = {
            "KV": {"kv_tokens": PLENTY},
            "slots": {"kv_tokens": PLENTY, "choices": {"engine": more_slots}},
        }
        if self.system.scales:
            gifts["start-up"] = {"choices": {"path": "ideal", "live": "no"}}
            gifts["autoscaling"] = {"choices": self._all_there(size)}
        if any(map(self.of_the_run.get, HAPPENINGS)):
            gifts["failures"] = dict.fromkeys(HAPPENINGS, ())
        gifts["queue"] = {"table": self.table.with_columns(arrival_s=even)}
        for name, gift in gifts.items():
            run = run_of(self._resolve(self.deployments[tp], size, **gift), seed=self.seed)
            if share_kept(run, self.slo) >= self.share:
                return name
        return "compute"

    def _all_there(self, size: Size) -> Mapping[str, Any]:
        """The choices by which all of a size are there all the time."""
        return {"autoscaler": "none", "provisioning": size if len(self.models) == 1 else "full"}

    def _possible(self, deployments: Sequence[Deployment] | None) -> list[tuple[Deployment, list[Any]]]:
        """Deployments that can hold the models and may keep the promise, with the sizes that the cluster has room for.

        Those of which no size can keep it are in `hopeless`, by their TP.
        """
        tried = [Deployment(tp=tp) for tp in TPS] if deployments is None else list(deployments)
        found, refusals = [], []
        on_a_host = max(group.accelerators for group in self.cluster.groups)
        for deployment in tried:
            try:
                sizes = self._sizes(deployment)
                bound = bound_of(self._resolve(deployment, sizes[-1]), self.slo, self.share)
            except UserError as error:
                refusals.append((deployment.tp <= on_a_host, error))
                continue
            if bound.share < self.share:
                self.hopeless[deployment.tp] = bound
            else:
                found.append((deployment, sizes))
        if not (found or self.hopeless):
            told = [error for fits, error in refusals if fits] or [error for _, error in refusals]
            raise told[-1] if deployments else told[0]
        return found

    def _sizes(self, deployment: Deployment) -> list[Any]:
        """All sizes, in instances, the smallest first."""
        places = len(instance_places(self.cluster, deployment.tp))
        if not self.system.scales:
            return list(range(1, places + 1))
        least, most, _ = bounds_of(self.system, deployment)
        step = 1 if len(self.models) == 1 else places // self.cluster.hosts
        sizes = [size for size in range(step, places + 1, step) if size >= least * len(self.models)]
        sizes = [size for size in sizes if size <= most * len(self.models)] if len(self.models) == 1 else sizes
        if not sizes:
            count = len(self.models) * least
            raise UserError(
                f"{len(self.models)} models x {least} instances x TP {deployment.tp} = {count * deployment.tp} "
                f"accelerators at least, but {self.cluster.name} has room for {places} instances; take fewer or a "
                "larger cluster."
            )
        return sizes

    def _resolve(
        self, deployment: Deployment, instances: Any, table: pl.DataFrame | None = None, **changes: Any
    ) -> Asked:
        choices, cluster = changes.pop("choices", {}), self.cluster
        if not self.system.scales:
            choices = {"provisioning": instances, **choices}
        elif len(self.models) == 1:
            least = min(bounds_of(self.system, deployment).least, instances)
            bounds = {"prefill": (least, instances), "decode": None, "colocated": True}
            deployment = deployment.model_copy(update=bounds)
        else:
            cluster = cluster.with_hosts(instances * cluster.hosts // len(instance_places(cluster, deployment.tp)))
        given = dict(self.of_the_run) | changes
        if (not self.system.scales or len(self.models) > 1) and instances < self._sizes(deployment)[-1]:
            given |= _of_those_there(given, instances, cluster.hosts)
        return resolved(
            self.system.replaced(**choices), cluster=cluster, models=self.models, deployment=deployment, slo=self.slo,
            trace=self.table if table is None else table, **given,
        )  # fmt: skip

    def _tried(self, tp: int, size: Size) -> Try:
        if (tp, size) not in self.known:
            if self.progress is not None:
                self.progress(f"{self._who}: {self._described(tp, size)}")
            run = run_of(self._resolve(self.deployments[tp], size), seed=self.seed)
            found = run.metrics(self.slo)
            costs = (found[name] for name in ("gpu_allocated_s", "gpu_active_s", "peak_gpus"))
            self.known[tp, size] = self._try_of(tp, size, share_kept(run, self.slo), *costs)
        return self.known[tp, size]

    def _try_of(self, tp: int, size: Any, *found: float) -> Try:
        return Try(tp, size, *found)

    def _described(self, tp: int, size: Any) -> str:
        return f"{size} instances of TP {tp}"

    @property
    def _who(self) -> str:
        return f"{self.system.name}, {', '.join(self.models)}"


def _of_those_there(given: Mapping[str, Any], places: int, hosts: int) -> dict[str, list]:
    """Failures of so many instances, or places, and hosts; what a smaller deployment does not have cannot fail."""
    there = {"instance": range(places), "host": range(hosts)}

    def can(one: Any) -> bool:
        return all(getattr(one, name, None) is None or getattr(one, name) in there[name] for name in there)

    return {name: [one for one in given.get(name, ()) if can(one)] for name in ("failures", "link_failures")}


def share_kept(run: Run, slo: SLO) -> float:
    """Attainment of a promise by its own definition; 1 where no request counts."""
    kept, weight = run.kept(slo)
    total = float(weight.sum())
    return float((kept * weight).sum()) / total if total > 0 else 1.0
