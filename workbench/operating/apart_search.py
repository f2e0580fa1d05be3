"""Attainment of a system that keeps prompts and decoding apart, by both of its numbers of instances."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from workbench.errors import UserError
from workbench.operating.apart import bounds_apart
from workbench.operating.choices import counted
from workbench.operating.layout import instance_places
from workbench.operating.simulating import Asked, resolved
from workbench.operating.size_search import Search, Size, Try
from workbench.profiles import Deployment


class ApartSearch(Search):
    """The sizes of one system for one model: how many instances compute prompts and how many decode, or may at most.

    More of one kind may keep the promise worse: prompts that are computed sooner wait for the next token in longer
    lines. So all sizes are tried, those with fewest instances first, up to the first sum that will do.
    """

    def smallest(self, deployments: Sequence[Deployment] | None) -> Try | None:
        """The fewest accelerators that keep the promise; of equals the one that keeps it best; None where none does."""
        best: Try | None = None
        for deployment, sizes in self._possible(deployments):
            self.deployments[deployment.tp] = deployment
            for size in sizes:
                if best is not None and deployment.tp * sum(size) > best.accelerators:
                    break
                one = self._tried(deployment.tp, size)
                better = best is None or (one.accelerators, -one.attainment) < (best.accelerators, -best.attainment)
                if one.attainment >= self.share and better:
                    best = one
        return best

    def below(self, one: Try) -> Size | None:
        """The size with one instance fewer, of whichever kind, that keeps the promise better; None if there is none."""
        prefill, decode = self.size_of(one)
        sizes = self._sizes(self.deployments[one.tp])
        fewer = [size for size in ((prefill - 1, decode), (prefill, decode - 1)) if size in sizes]
        return max(fewer, key=lambda size: self._tried(one.tp, size).attainment, default=None)

    def size_of(self, one: Try) -> Size:
        """Both numbers."""
        return one.prefill, one.decode

    def _all_there(self, size: Size) -> Mapping[str, Any]:
        return {"autoscaler": "none", "provisioning": "full", "live": "no"}

    def _sizes(self, deployment: Deployment) -> list[Size]:
        """All sizes, those with fewest instances first."""
        places = len(instance_places(self.cluster, deployment.tp))
        prefill, decode = bounds_apart(self.system, deployment)
        sizes = [
            (p, d)
            for p in range(max(1, prefill.least), min(places, prefill.most) + 1)
            for d in range(max(1, decode.least), min(places - p, decode.most) + 1)
        ]
        if not sizes:
            raise UserError(
                f"{counted(max(1, prefill.least), 'instance')} for prompts and {max(1, decode.least)} that decode are "
                f"wanted at least, but {self.cluster.name} has room for {places} of TP {deployment.tp}; take fewer or "
                "a larger cluster."
            )
        return sorted(sizes, key=lambda size: (sum(size), size))

    def _resolve(
        self, deployment: Deployment, size: Size, table: pl.DataFrame | None = None, **changes: Any
    ) -> Asked:  # fmt: skip
        choices = dict(changes.pop("choices", {}))
        if not self.system.scales:
            choices = {"provisioning": "full", **choices}
        bounds = bounds_apart(self.system, deployment)
        least = [min(bound.least, count) for bound, count in zip(bounds, size, strict=True)]
        most = dict(zip(("prefill", "decode"), zip(least, size, strict=True), strict=True))
        return resolved(
            self.system.replaced(**choices), cluster=self.cluster, models=self.models, slo=self.slo,
            deployment=deployment.model_copy(update=most), trace=self.table if table is None else table,
            **dict(self.of_the_run) | changes,
        )  # fmt: skip

    def _described(self, tp: int, size: Size) -> str:
        return f"{counted(size[0], 'instance')} for prompts and {size[1]} that decode, of TP {tp}"

    def _try_of(self, tp: int, size: Size, *found: float) -> Try:
        return Try(tp, sum(size), *found, *size)
