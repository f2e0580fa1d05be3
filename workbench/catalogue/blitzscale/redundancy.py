"""How many host copies a model should have: bytes against the chance that none is left, and how long that lasts."""

from collections.abc import Mapping
from itertools import combinations
from math import comb
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.spec import Agree, experiment
from workbench.scaling.model.parameter_pool import ParameterPool

COPIES = (0, 1, 2, 3)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["copies"].filter(pl.col("backend") == tables["copies"]["backend"][0])
    lost = dict(zip(table["copies"], table["unreachable"], strict=True))
    text = f"When {parameters['failed']} of {parameters['hosts']} hosts fail at once, an idle model with one copy"
    return f"{text} is out of reach with probability {lost[1]:.3g}, with two copies {lost[2]:.3g}."


@experiment(
    "blitzscale/redundancy",
    title="One host copy, or more?",
    question="What do more copies cost, and how often is a model out of reach when hosts fail?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.05, "simpy": 1.0},
    draw="copies.redundancy",
    panels=("unreachable", "bytes", "recovery"),
    say=_say,
    stochastic=True,
    agrees=(
        Agree(
            "mean chance that a model is out of reach",
            "copies",
            ("copies",),
            "unreachable",
            {("analytic", "simpy"): (-0.2, 0.2)},
        ),
        Agree(
            "mean time until all copies are there again",
            "copies",
            ("copies",),
            "recovery_s",
            {("analytic", "simpy"): (-0.2, 0.2)},
        ),
    ),
)
def redundancy(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster", profile="cluster", status="published", source="OSDI'25 paper Table 1, cluster A")
    ] = "blitzscale-a",
    model: Annotated[str, Par("Model", profile="model", status="published", source="OSDI'25 paper §6")] = "llama-3-8b",
    models: Annotated[int, Par("Models of this size", low=1, high=200, source="chosen")] = 20,
    hosts: Annotated[int, Par("Hosts", low=2, high=64, source="4 in the paper's cluster A; 8 to have room for 3")] = 8,
    failed: Annotated[int, Par("Hosts that fail at the same time", low=1, high=8, source="chosen")] = 2,
    store_bytes_per_s: Annotated[
        float, Par("Rate at which a host reads from the store", "bytes/s", low=1e7, high=1e11, log=True,
                   source="remote SSD of a2-ultragpu-8g, 0.29 Gbps a GPU, times 8 GPUs")
    ] = 0.29e9,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Bytes in memory, probability that an idle model is out of reach, and seconds until lost copies are there again.

    Copies are spread over distinct hosts; hosts that fail are chosen at random, all sets equally likely. A lost copy
    is read again from another host that has one, or from the store where there is none; a host reads its lost copies
    one after the other. Simulated: the parameter pool itself, host by host.
    """
    failed = min(failed, hosts)
    shape, made = context.model(model), context.cluster(cluster)
    nic = context.cite(f"{made.name} network card, nominal", made.nic.nominal_bytes_per_s)
    rows = []
    for copies in COPIES:
        if context.backend == "analytic":
            row = _formula(copies, models, hosts, failed, shape.weight_bytes, nic, store_bytes_per_s)
        else:
            row = _pooled(context, copies, models, hosts, failed, shape.weight_bytes, nic, store_bytes_per_s)
        rows.append({"copies": copies, "bytes": float(copies * models * shape.weight_bytes)} | row)
    table = pl.DataFrame(rows)
    known = [
        (f"{name}, {name_of(model)}", f"{row['copies']} copies", row[column], unit)
        for row in rows
        for name, column, unit in (
            ("bytes in hosts' memory", "bytes", "bytes"),
            ("probability of being out of reach", "unreachable", "1"),
            ("time until all copies are there again", "recovery_s", "s"),
        )
    ]
    return {"copies": table, "headline": headline(known)}


def _formula(
    copies: int, models: int, hosts: int, failed: int, size: float, nic: float, store: float
) -> dict[str, float]:
    """A model is out of reach when all its hosts are among those that failed."""
    held = min(copies, hosts)
    lost = comb(hosts - held, failed - held) / comb(hosts, failed) if 0 < held <= failed else float(held == 0)
    left = max(1, hosts - failed)
    if held == 0:
        return {"unreachable": 1.0, "recovery_s": float(np.ceil(models / left)) * size / store}
    copies_lost = models * held * failed / hosts
    from_store = models * lost
    # On average; each host that is left reads its share of the lost copies.
    seconds = ((copies_lost - from_store) * size / nic + from_store * size / store) / left
    return {"unreachable": lost, "recovery_s": seconds}


def _pooled(
    context: Context, copies: int, models: int, hosts: int, failed: int, size: float, nic: float, store: float
) -> dict[str, float]:
    """The parameter pool, over all sets of failing hosts or a random sample of them."""
    names = [f"host {i}" for i in range(hosts)]
    sets = list(combinations(names, failed)) if comb(hosts, failed) <= 200 else None
    rng = context.random("failures")
    if sets is None:
        sets = [tuple(rng.choice(names, failed, replace=False)) for _ in range(200)]
    if context.mode == "quick":
        sets = [sets[i] for i in rng.permutation(len(sets))[:60]]
    lost, seconds = [], []
    for chosen in sets:
        context.check()
        pool = ParameterPool(dict.fromkeys(names, 1e30), {f"model {i}": size for i in range(models)}, copies)
        pool.spread()
        # All fail at the same instant: a model is out of reach if none of its copies is elsewhere.
        safe = {copy.model for copy in pool.copies if copy.host not in chosen}
        lost.append(1 - len(safe) / models)
        load = dict.fromkeys(names, 0.0)
        for step in pool.fail(*chosen):
            if step.kind == "restore":
                load[step.copy.host] += size / (nic if step.copy.model in safe else store)
                safe.add(step.copy.model)  # a second copy is read from the first
        if not copies:
            left = max(1, hosts - failed)
            seconds.append(float(np.ceil(models / left)) * size / store)
        else:
            seconds.append(float(np.mean([load[host] for host in names if host not in chosen] or [0.0])))
    return {"unreachable": float(np.mean(lost)), "recovery_s": float(np.mean(seconds))}
