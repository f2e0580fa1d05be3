"""How far the greedy chains are from the best ones: random small clusters, every order tried."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.scaling.model.chain_times import best_chains, plan_time
from workbench.scaling.policy.chain_plan import Holder, Spare, plan_chains

GBPS = 1e9 / 8
EACH, ONE, MOST = "a chain from every free source", "one chain", "as many chains as are best"
RULES = (EACH, ONE, MOST)
FEW = 100
"""Clusters of a quick run."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    gaps = tables["gaps"].filter(pl.col("rule") == EACH)["ratio"]
    exact = float((gaps <= 1 + 1e-9).mean())
    text = f"The greedy plan loads the last instance as early as any in {exact:.0%} of {len(gaps)} random clusters"
    return f"{text}; at worst it takes {gaps.max():.3g} times as long."


@experiment(
    "blitzscale/plan-gap",
    title="The greedy plan against the best one",
    question="How much time does the greedy order of forwarding chains give away on small clusters?",
    backends=("analytic",),
    seconds={"analytic": 20},
    draw="copies.gaps",
    say=_say,
    stochastic=True,
    matches=(
        Match(
            ("nominal link speed in the drawing", "bandwidth inside a scale-up group"),
            incomparable=dict.fromkeys(
                ("PCIe 4, two GPUs share it", "RDMA", "NVLink"),
                "it describes a drawing; links of the random clusters here have 100, 200 or 400 Gbps",
            ),
        ),
    ),
)
def plan_gap(
    context: Context,
    *,
    clusters: Annotated[
        int, Par("Random clusters", low=10, high=2000, step=10, source="500; a quick run takes 100")
    ] = 500,
    accelerators: Annotated[
        int, Par("Most accelerators of a cluster", low=2, high=7, source="6: all orders tried")
    ] = 6,
    sources: Annotated[int, Par("Most sources", low=1, high=3, source="chosen")] = 3,
    between_leaves: Annotated[
        float, Par("Rate between leaf switches over that below one", low=0.1, high=1.0, step=0.05, source="chosen")
    ] = 0.5,
) -> dict[str, pl.DataFrame]:
    """Time until the last accelerator is loaded, greedy over best, on clusters of random links, leaves and domains.

    Links have 100, 200 or 400 Gbps, sources are decode instances or host copies, two leaf switches, and accelerators
    stand alone or two in a scale-up domain; all uniformly at random. The paper does not say how many chains there are;
    three rules are compared.
    """
    rng = context.random("clusters")
    count = min(clusters, FEW) if context.mode == "quick" else clusters
    rows = []
    for index in range(count):
        if index % 20 == 0:
            context.tell(f"{index} of {count} clusters")
            context.check()
        holders, spares = _cluster(rng, int(rng.integers(2, accelerators + 1)), int(rng.integers(1, sources + 1)))
        best, _ = plan_time(best_chains(holders, spares, len(spares), 1.0, between_leaves), 1.0, between_leaves)
        found = _greedy(holders, spares, between_leaves)
        rows += [
            {"cluster": index, "accelerators": len(spares), "rule": rule, "ratio": found[rule] / best} for rule in RULES
        ]
    gaps = pl.DataFrame(rows)
    known = []
    for rule in RULES:
        ratios = gaps.filter(pl.col("rule") == rule)["ratio"]
        known += [
            ("time of the greedy plan over the best, mean", rule, ratios.mean(), "1"),
            ("time of the greedy plan over the best, largest", rule, ratios.max(), "1"),
            ("share of clusters where the greedy plan is best", rule, float((ratios <= 1 + 1e-9).mean()), "1"),
        ]
    return {"gaps": gaps, "headline": headline(known)}


def _greedy(holders: list[Holder], spares: list[Spare], between_leaves: float) -> dict[str, float]:
    """Time until the last accelerator holds the weights, for each rule of how many chains there are."""
    taken = {}
    for chains in range(1, min(len(holders), len({spare.domain for spare in spares})) + 1):
        plan = plan_chains(holders, spares, len(spares), chains=chains)
        taken[chains], _ = plan_time(plan, 1.0, between_leaves)
    return {EACH: taken[max(taken)], ONE: taken[1], MOST: min(taken.values())}


def _cluster(rng: np.random.Generator, accelerators: int, sources: int) -> tuple[list[Holder], list[Spare]]:
    def rate() -> float:
        return float(rng.choice([100, 200, 400])) * GBPS

    holders = [
        Holder(
            name=f"source {i}", role=("decode", "host")[rng.integers(2)], leaf=int(rng.integers(2)), bytes_per_s=rate()
        )
        for i in range(sources)
    ]
    spares, domain = [], 0
    while len(spares) < accelerators:
        size, leaf, bytes_per_s = int(rng.integers(1, 3)), int(rng.integers(2)), rate()
        for _ in range(min(size, accelerators - len(spares))):
            spares.append(Spare(name=f"accelerator {len(spares)}", domain=domain, leaf=leaf, bytes_per_s=bytes_per_s))
        domain += 1
    return holders, spares
