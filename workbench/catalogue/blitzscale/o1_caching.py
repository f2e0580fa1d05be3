"""One host copy of each model in the cluster, or one on each host for a time: bytes, and misses of a second burst."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.caching.model import scale_ups
from workbench.caching.simulated import simulate_scale_ups
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Agree, Match, experiment
from workbench.scaling.model.parameter_pool import ParameterPool

POOLED, CACHED = "BlitzScale, one copy in the cluster", "ServerlessLLM, a copy on each host that served"
COPIES = "host copies per model at any time, BlitzScale"
KEEP, GAP = "time to live of the per-host cache, ServerlessLLM", "gap between the two bursts"
MISSES = "host-cache misses of the second burst, time to live {:g} s"
KEEPS_S = {"paper": 300, "artifact": 30}
SWEPT_S = (10, 30, 60, 100, 150, 200, 250, 300)
_PAPER = "OSDI'25 paper"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["misses"].filter(pl.col("backend") == tables["misses"]["backend"][0])
    missed = dict(table.select("keep_s", "missed").iter_rows())
    most = tables["bytes"]["bytes"].max()
    least = tables["bytes"].filter(way=POOLED)["bytes"].max()
    return (
        f"Of {parameters['instances'] - 1} starts of the second burst {missed[30]} miss at 30 s and {missed[300]} at "
        f"300 s; {parameters['models']} models take up to {least / 1e9:.3g} GB of hosts' memory with one copy each and "
        f"{most / 1e9:.3g} GB with one on each host."
    )


@experiment(
    "blitzscale/o1-caching",
    title="One host copy of each model",
    question="What does one copy in the whole cluster save, and when does a cache on each host forget?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.05, "simpy": 0.2},
    draw="copies.one_copy",
    panels=("bytes", "misses"),
    say=_say,
    matches=(Match((KEEP, GAP), fitted=ALL),),
    agrees=(Agree("misses of the second burst", "misses", ("keep_s",), "missed", {("analytic", "simpy"): (0.0, 0.0)}),),
)
def o1_caching(
    context: Context,
    *,
    model: Annotated[str, Par("Model", profile="model", status="published", source=f"{_PAPER} Fig 17: AzureCode")] = (
        "llama-3-8b"
    ),
    models: Annotated[int, Par("Models of that size", low=1, high=64, source="chosen")] = 8,
    hosts: Annotated[int, Par("Hosts", low=1, high=64, status="published", source=f"{_PAPER} Table 1, cluster B")] = 2,
    instances: Annotated[int, Par("Instances in a burst", low=2, high=64, source="chosen: half of 16 GPUs")] = 8,
    burst_s: Annotated[int, Par("A burst lasts", "s", low=1, high=60, source="chosen")] = 10,
    gap_s: Annotated[
        int,
        Par("From burst to burst", "s", low=1, high=600, status="published", source=f"{_PAPER} Fig 17: 0:05 and 3:25"),
    ] = 200,
) -> dict[str, pl.DataFrame]:
    """Bytes in hosts' memory by number of hosts, and starts of the second of two bursts that find no copy.

    Between the bursts one instance is left. A cache on each host forgets what was not used for the time to live; the
    pool keeps exactly one copy, in a host's memory only while no instance has the weights.
    """
    size = context.model(model).weight_bytes
    need = np.ones(5 + gap_s + burst_s + 1, np.int64)
    for start in (5, 5 + gap_s):
        need[start : start + burst_s] = instances
    run = scale_ups if context.backend == "analytic" else simulate_scale_ups
    keeps = sorted({*SWEPT_S, *KEEPS_S.values()})
    missed = [int(run(need, keep).missed[5 + gap_s :].sum()) for keep in keeps]
    counts = _by_formula(hosts, models) if context.backend == "analytic" else _by_pool(hosts, models, need)
    rows = [(count, way, copies * size) for count, way, copies in counts]
    at = dict(zip(keeps, missed, strict=True))
    most = max(copies for _, way, copies in counts if way == POOLED) / models
    known: list[tuple[str, str, float, str]] = [(MISSES.format(keep), "", at[keep], "1") for keep in KEEPS_S.values()]
    known.append((COPIES, "", most, "1"))
    if context.backend == "analytic":
        known.append((GAP, "AzureCode", gap_s, "s"))
        known += [(KEEP, name, keep, "s") for name, keep in KEEPS_S.items()]
    return {
        "bytes": pl.DataFrame(rows, schema=["hosts", "way", "bytes"], orient="row"),
        "misses": pl.DataFrame({"keep_s": keeps, "missed": missed}),
        "headline": headline(known),
    }


def _by_formula(hosts: int, models: int) -> list[tuple[int, str, int]]:
    """Most copies in hosts' memory of all models: one each, or one each on every host."""
    counts = range(1, hosts + 1)
    return [(n, way, models * (1 if way == POOLED else n)) for n in counts for way in (POOLED, CACHED)]


def _by_pool(hosts: int, models: int, need: np.ndarray) -> list[tuple[int, str, int]]:
    """The same, deployment by deployment: all models have the same load."""
    found = []
    for count in range(1, hosts + 1):
        names = [f"host {h}" for h in range(count)]
        served = [f"model {m}" for m in range(models)]
        pool = ParameterPool(dict.fromkeys(names, float(models)), dict.fromkeys(served, 1.0))
        pool.spread()
        most, touched = sum(len(pool.in_memory(one)) for one in served), set()
        running = 0
        for wanted in need.tolist():
            for one in served:
                for k in range(running, wanted):
                    pool.deploy(one, names[k % count], f"{one}, {k}")
                    touched.add((one, names[k % count]))
                for k in range(running - 1, wanted - 1, -1):
                    pool.reclaim(f"{one}, {k}")
            running = wanted
            most = max(most, sum(len(pool.in_memory(one)) for one in served))
        found += [(count, POOLED, most), (count, CACHED, len(touched))]
    return found
