"""Figure 19: copies in hosts' memory, one for each model against one for each host that served lately."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.caching.model import instances_needed
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Match, experiment
from workbench.catalogue.tracing import replayed
from workbench.scaling.model.parameter_pool import ParameterPool

POOLED, CACHED = "one copy in the cluster (BlitzScale)", "a copy on each host that served lately (ServerlessLLM)"
WAYS = (POOLED, CACHED)
KEEPS_S = (10, 30, 60, 120, 300, 600)
_AVERAGE = "host copies per model, BlitzScale"
_SCRIPT = "script of the artifact, see blitzscale/fig4"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    mean = dict(
        tables["mean"].filter(pl.col("backend") == tables["mean"]["backend"][0]).select("way", "mean").iter_rows()
    )
    text = f"On average {mean[CACHED]:.3g} hosts keep a copy for {parameters['keep_s']} s after use"
    return f"{text}; with one copy in the cluster, only while no instance holds the weights, it is {mean[POOLED]:.3g}."


@experiment(
    "blitzscale/fig19",
    title="What O(1) host copies save",
    question="How many copies of a model lie in hosts' memory over time?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.1, "simpy": 0.5},
    draw="copies.copies",
    panels=("copies", "keep"),
    say=_say,
    matches=(
        Match(
            series=(_AVERAGE,),
            note="the instances are those that the trace's load asks for, second by second",
        ),
    ),
    agrees=(Agree("copies, by second", "copies", ("time_s", "way"), "copies", {("analytic", "simpy"): (-1e-9, 1e-9)}),),
)
def fig19(
    context: Context,
    *,
    trace: Annotated[
        str, Par("Trace", trace=True, free=True, source="AzureCode, AzureConv and BurstGPT in the paper")
    ] = "azure-code-2023",
    keep_s: Annotated[
        int,
        Par(
            "Hosts keep a copy for", "s", low=1, high=900, status="published",
            source="OSDI'25 paper §3: 5 minutes; 30 s in the artifact's code",
        ),
    ] = 300,
    hosts: Annotated[int, Par("Hosts", low=1, high=64, status="published", source="OSDI'25 paper Table 1, A")] = 4,
    places: Annotated[int, Par("Instances that fit a host", low=1, high=16, source="8 GPUs, an instance each")] = 8,
    spread: Annotated[bool, Par("Instances go to one host after another", source="else a host is filled first")] = True,
    least: Annotated[int, Par("Instances at least", low=0, high=32, source="0: a model may have none")] = 0,
    upscale: Annotated[float, Par("Load over the trace's", low=0.1, high=50, log=True, source="as in Fig 4")] = 1.0,
    tokens_per_s: Annotated[
        float,
        Par("Prompt tokens of an instance", "1/s", low=1000, high=50_000, step=500, status="published", source=_SCRIPT),
    ] = 13_000.0,
    headroom: Annotated[float, Par("Headroom", low=1, high=10, step=0.5, status="published", source=_SCRIPT)] = 4.0,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Copies in memory by second and on average, and the average by keep-alive.

    The load asks for instances by the rule of Figure 4. Per host, a copy lies in memory while an instance of the model
    runs there and for the keep-alive after; in the pool there is one exactly while no instance runs anywhere.
    """
    found = replayed(context, trace, longest_s=3600.0)
    tokens = np.minimum(found.requests["prompt_tokens"].to_numpy(), 4095) * upscale
    need = instances_needed(found.requests["arrival_s"].to_numpy(), tokens, tokens_per_s, headroom)
    need = np.clip(need, least, hosts * places)
    run = _by_formula if context.backend == "analytic" else _by_pool
    pooled, cached = run(need, keep_s, hosts, places, spread)
    copies = pl.concat(
        [
            pl.DataFrame({"time_s": np.arange(need.size), "way": [way] * need.size, "copies": values.astype(float)})
            for way, values in ((POOLED, pooled), (CACHED, cached))
        ]
    )
    mean = copies.group_by("way", maintain_order=True).agg(mean=pl.col("copies").mean(), most=pl.col("copies").max())
    averages = dict(mean.select("way", "mean").iter_rows())
    known = [
        (_AVERAGE, "", averages[POOLED], "1"),
        ("host copies per model, ServerlessLLM", f"{hosts} hosts", averages[CACHED], "1"),
    ]
    tables = {"copies": copies, "mean": mean, "headline": headline(known)}
    if context.backend == "analytic":
        keeps = sorted({*KEEPS_S, keep_s})
        by_keep = [float(_by_formula(need, keep, hosts, places, spread)[1].mean()) for keep in keeps]
        tables["keep"] = pl.DataFrame({"keep_s": keeps, "copies": by_keep})
    return tables


def _first_need(hosts: int, places: int, spread: bool) -> np.ndarray:
    """Host -> the number of instances from which on it has one."""
    return np.arange(1, hosts + 1) if spread else 1 + places * np.arange(hosts)


def _by_formula(need: np.ndarray, keep_s: int, hosts: int, places: int, spread: bool) -> tuple[np.ndarray, np.ndarray]:
    """Copies by second, pooled and per host."""
    seconds = np.arange(need.size)
    cached = np.zeros(need.size, int)
    for first in _first_need(hosts, places, spread):
        last = np.maximum.accumulate(np.where(need >= first, seconds, -(10**9)))
        cached += seconds - last <= keep_s
    return (need == 0).astype(int), cached


def _by_pool(need: np.ndarray, keep_s: int, hosts: int, places: int, spread: bool) -> tuple[np.ndarray, np.ndarray]:
    """The same, instance by instance: a parameter pool, and a timer on each host."""
    names = [f"host {h}" for h in range(hosts)]
    pool = ParameterPool(dict.fromkeys(names, 1.0), {"model": 1.0})
    pool.spread()
    running: list[str] = []
    expires = dict.fromkeys(names, -1)
    pooled, cached = [], []
    for second, count in enumerate(need.tolist()):
        while len(running) < count:
            index = len(running)
            pool.deploy("model", names[index % hosts if spread else index // places], f"instance {index}")
            running.append(f"instance {index}")
        while len(running) > count:
            pool.reclaim(running.pop())
        for copy in pool.copies:
            if copy.instance:
                expires[copy.host] = second + keep_s
        pooled.append(len(pool.in_memory("model")))
        cached.append(sum(second <= end for end in expires.values()))
    return np.array(pooled), np.array(cached)
