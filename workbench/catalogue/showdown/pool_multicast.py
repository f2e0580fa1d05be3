"""Aegaeon's pool when no host keeps all models: weights come by a multicast, and go on to the GPU block by block."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.showdown.common import of_most_models
from workbench.catalogue.showdown.pool import QUICK_S, Duration, Most, Rate, Seeds, Tail, engine, tail_trace, told
from workbench.catalogue.spec import Agree, experiment
from workbench.errors import InputError
from workbench.pooling import ByPlan, ByRate, pooled, pooling_on
from workbench.transfer.model import Hockney, uniform_network
from workbench.transfer.policy import make_schedule
from workbench.transfer.simulated import simulate as multicast

MEMORY, SENT, STORE = "host memory", "multicast", "remote store"
HOSTS = (1, 3, 7, 15)
"""Receivers of one multicast, beside the parameter's own number; one more host sends."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    if "pools" not in tables:
        table = tables["switch"].filter(pl.col("hosts") == parameters["receivers"])
        seconds = dict(table.select("source", "seconds").rows())
        return (
            f"A switch takes {seconds[MEMORY]:.2g} s from the host's memory, {seconds[SENT]:.2g} s by a multicast to "
            f"{parameters['receivers']} hosts, and {seconds[STORE]:.2g} s from a remote store."
        )
    count, rows = of_most_models(tables["pools"], "source", "attainment")
    text = ", ".join(f"{row['attainment']:.1%} from {row['source']}" for row in rows)
    return f"With {count} models so much of the promise is kept: {text}."


@experiment(
    "showdown/pool-multicast",
    title="A pool that is loaded by multicast",
    question="How long does a switch of models take, and how well is the promise kept, when weights come from another "
    "host by a multicast instead of the host's own memory?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.1, "compiled": 3.0, "simpy": 12.0},
    draw="showdown_pools.pool_multicast",
    panels=("switch", "attainment"),
    say=_say,
    stochastic=True,
    agrees=(
        Agree("switch", "switch", ("source", "hosts"), "seconds", {("analytic", "simpy"): (-1e-6, 1e-6)}),
        Agree("attainment", "pools", ("source", "models", "seed"), "attainment", {("compiled", "simpy"): (0, 0)}),
    ),
)
def pool_multicast(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    schedule: Annotated[
        str, Par("Plan", choices=("binomial_pipeline", "chain", "binomial_tree"), source="λScale's and BlitzScale's")
    ] = "binomial_pipeline",
    receivers: Annotated[int, Par("Hosts that receive", low=1, high=31, step=1, source="chosen")] = 7,
    blocks: Annotated[int, Par("Blocks", low=1, high=256, log=True, source="MLSys'26 paper: 16")] = 16,
    nic_bytes_per_s: Annotated[
        float, Par("Network of a host", "bytes/s", low=1e9, high=400e9, log=True, source="chosen: a card of 200 Gbit/s")
    ] = 25e9,
    store_bytes_per_s: Annotated[
        float, Par("Remote store", "bytes/s", low=1e8, high=20e9, log=True, source="chosen: about a fast SSD of others")
    ] = 1e9,
    most: Most = 64,
    rate_per_s: Rate = 0.2,
    tail: Tail = 1.0,
    duration_s: Duration = 120.0,
    seeds: Seeds = 3,
) -> dict[str, pl.DataFrame]:
    """Seconds of a switch by source for the mean model of the market, and Aegaeon's attainment with such switches.

    A multicast reaches all receivers; the last block of the last host then goes over PCIe. Every switch takes as long
    as by itself: multicasts of several models do not meet on the network here, see showdown/two-bursts.
    """
    hosts = context.cluster(cluster)
    if hosts.host.pcie is None:
        raise InputError(f"{hosts.name} states no PCIe", "choose another cluster", field="cluster")
    pcie = context.cite("host memory to a GPU", float(hosts.host.pcie.rate()), "bytes/s", "computed", hosts.name)
    plan = {"schedule": schedule, "blocks": blocks, "cost": Hockney(bytes_per_s=nic_bytes_per_s), "bytes_per_s": pcie}
    ways = {MEMORY: ByRate(bytes_per_s=pcie), SENT: ByPlan(hosts=receivers, **plan)}
    ways[STORE] = ByRate(bytes_per_s=min(store_bytes_per_s, pcie))
    sizes = [one.weight_bytes for one in pools.models_on(context, most, cluster).values()]
    size = context.cite("weights of the mean model", float(np.mean(sizes)), "bytes", "computed", "the market's mix")
    found: dict[str, pl.DataFrame] = {}
    if context.backend != "compiled":
        rows = []
        for count in sorted({*HOSTS, receivers}):
            rows += [{"source": name, "hosts": count, "seconds": ways[name].of(size)} for name in (MEMORY, STORE)]
            one = ByPlan(hosts=count, **plan)
            seconds = one.of(size) if context.backend == "analytic" else _simulated(one, size)
            rows.append({"source": SENT, "hosts": count, "seconds": seconds})
        found["switch"] = pl.DataFrame(rows)
    if context.backend != "analytic":
        found["pools"] = _pools(context, ways, cluster, most, rate_per_s, tail, duration_s, seeds)
    rows = found["switch"].to_dicts() if "switch" in found else []
    known = [(f"switch, {row['source']}", row["hosts"], row["seconds"], "s") for row in rows]
    return {**found, "headline": headline(known)}


def _simulated(plan: ByPlan, weight_bytes: float) -> float:
    """As `ByPlan.of`, blocks landing when the simulated flows say."""
    schedule = make_schedule(plan.schedule, plan.hosts + 1, plan.blocks)
    size = weight_bytes / schedule.blocks
    run = multicast(schedule, uniform_network(plan.hosts + 1, plan.cost.bytes_per_s), size)
    ready_s = []
    for landed_s in np.sort(run.arrival_s[1:], axis=1):
        there_s = 0.0
        for block_s in landed_s:
            there_s = max(there_s, float(block_s)) + size / plan.bytes_per_s
        ready_s.append(there_s)
    return max(ready_s)


def _pools(
    context: Context, ways: Mapping[str, ByRate | ByPlan], cluster: Any, most: int, rate_per_s: float, tail: float,
    duration_s: float, seeds: int,
) -> pl.DataFrame:  # fmt: skip
    if context.mode == "quick":
        duration_s, seeds = min(duration_s, QUICK_S), 1
    rows = []
    for count in [most] if context.mode == "quick" else [most // 2, most]:
        models = pools.models_on(context, count, cluster)
        for seed in range(context.seed, context.seed + seeds):
            trace = tail_trace(count, rate_per_s, tail, duration_s, seed)
            for name, switch in ways.items():
                context.tell(f"{name}, {count} models, seed {seed}")
                pooling = pooling_on(context.cluster(cluster), switch=switch, assumed=switch)
                run = pooled(pooling, models, trace, backend=engine(context))
                rows.append({"source": name, "models": count, "seed": seed, **told(run)})
    return pl.DataFrame(rows)
