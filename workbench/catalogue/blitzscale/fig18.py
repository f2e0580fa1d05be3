"""Figure 18: latency and GPU time of BlitzScale, ServerlessLLM, and full and half provisioning, AzureConv and 24B."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.blitzscale.evaluating import (
    BLITZ,
    CACHED,
    CONV,
    DOWN,
    EACH,
    FULL,
    HALF,
    ONE,
    PROMISES,
    PROMPTS,
    RUNS,
    SLLM,
    SLLM_30,
    UP,
    Half,
    Largest,
    Load,
    Statistic,
    Waits,
    Window,
    prepared,
    serve,
    waiting,
)
from workbench.catalogue.blitzscale.telling import TBT, TTFT, told, violated
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Assumption, Match, Ordering, experiment

SYSTEMS = (BLITZ, SLLM, SLLM_30, CACHED, FULL, HALF)
OVER, SAVED = "GPU time over a full provisioning", "GPU time saved against full provisioning"
POINTS = "GPU time saved against ServerlessLLM, in points of full provisioning"
RELATIVE = "GPU time saved against ServerlessLLM, relative"
VIOLATE = "share of requests that violate five times the average latency"
AGAINST = {SLLM: "against ServerlessLLM", HALF: "against DistServe with half of the instances"}
_PAPER = "OSDI'25 paper"

_LOAD = Assumption("half of the largest load is by promises kept, not by prompts computed", {"largest_by": PROMPTS})
_LONG = Assumption("a run takes five minutes, the published ones eight", {"window_s": 480.0})
_SHORT = Assumption("a run takes five minutes, in which loads from SSDs weigh little", {"window_s": 120.0})
_DOWN = Assumption("half of 5 and 3 instances is 3 and 2", {"half": DOWN})
_DOWN_LOADED = Assumption(
    "half of 5 and 3 instances is 3 and 2, and the load is half of the largest, which these still serve",
    {"half": DOWN, "load": 0.75},
)
_QUEUE = Assumption("prompts wait in one queue until an instance is free", {"waits": EACH})
_OWN = Assumption(f"the average latency is that of {FULL}", {"average_of": BLITZ})
_HALVED = Assumption(f"the average latency is that of {FULL}", {"average_of": HALF})


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    mean = tables["totals"].group_by("system", maintain_order=True).agg(pl.col("held", "active", f"{TTFT} P95").mean())
    parts = [
        f"{row['system']} {row['held']:.0%} ({row['active']:.0%} active, TTFT P95 {row[f'{TTFT} P95']:.2g} s)"
        for row in mean.to_dicts()
    ]
    return f"GPU time over that of a full provisioning: {', '.join(parts)}."


@experiment(
    "blitzscale/fig18",
    title="Latency and GPU time against full and half provisioning",
    question="What does scaling save of a full provisioning's GPU time, and what does it cost in latency?",
    backends=("compiled",),
    seconds={"compiled": 6.0},
    draw="evaluated.fig18",
    panels=("ttft", "tbt", "gpus", "time", "starts", "harm"),
    say=_say,
    stochastic=True,
    replications=RUNS,
    matches=(
        Match((OVER, POINTS, RELATIVE, SAVED), assumptions=(_SHORT, _LOAD)),
        Match((VIOLATE,), assumptions=(_OWN, _HALVED)),
        Match((f"{TTFT} reduction {AGAINST[HALF]}",), assumptions=(_DOWN, _DOWN_LOADED, _QUEUE)),
        Match((f"{TBT} reduction {AGAINST[HALF]}",), assumptions=(_DOWN,)),
        Match((f"{TTFT} reduction {AGAINST[SLLM]}",), assumptions=(_LONG,)),
        Match((f"{TBT} reduction {AGAINST[SLLM]}",), assumptions=(_LONG,)),
    ),
    orderings=(
        Ordering(
            "GPU time: BlitzScale below ServerlessLLM below a full provisioning",
            (f"{OVER}, {BLITZ}", f"{OVER}, {SLLM}", f"{OVER}, {FULL}"),
            assumptions=(_LOAD,),
        ),
        Ordering(
            "a full provisioning has the shortest TTFT, half of it the longest",
            tuple(f"{TTFT}, {name}" for name in (FULL, BLITZ, HALF)),
            assumptions=(_DOWN, _DOWN_LOADED),
        ),
    ),
)
def fig18(
    context: Context,
    *,
    cluster: Annotated[
        str,
        Par(
            "Cluster",
            profile="cluster",
            status="inferred",
            source="artifact's configuration: two hosts of 8",
        ),
    ] = CONV.cluster,
    load: Load = 0.5,
    largest_by: Largest = PROMISES,
    window_s: Window = 300.0,
    statistic: Statistic = "P95",
    half: Half = UP,
    waits: Waits = ONE,
    average_of: Annotated[
        str, Par("Five times the average of", choices=SYSTEMS, source="chosen; not said whose average it is")
    ] = FULL,
) -> dict[str, pl.DataFrame]:
    """TTFT, TBT, GPUs over time, GPU time held and active, three times of each start, TBT during and outside starts.

    Each run begins at a random request of the trace, with the fewest instances and no weights in hosts' memory but
    where a system keeps them. GPU time held counts from the decision to the release; active while a request runs.
    Prompts wait in one queue for whoever is free, as in the artifact. Many of them break the promise of five times
    the average, which a full provisioning's short waits set; judged by BlitzScale's own average hardly any does.
    """
    hosts, trace = prepared(context, CONV, load, largest_by, window_s, cluster)
    changes = waiting(waits)
    served = {name: serve(context, CONV, hosts, name, trace, half, **changes) for name in SYSTEMS}
    tables = told(list(served.values()))
    full = tables["totals"].filter(system=FULL).row(0, named=True)
    totals = tables["totals"].with_columns(
        held=pl.col("gpu_allocated_s") / full["gpu_allocated_s"],
        active=pl.col("gpu_active_s") / full["gpu_allocated_s"],
        violate=pl.Series([violated(one, served[average_of]) for one in served.values()]),
    )
    rows = {row["system"]: row for row in totals.to_dicts()}
    held = {name: row["held"] for name, row in rows.items()}
    known = [
        *((OVER, name, held[name], "1") for name in SYSTEMS),
        *((f"{OVER}, active", name, rows[name]["active"], "1") for name in SYSTEMS),
        *((f"{OVER}, {name}", "", held[name], "1") for name in (BLITZ, SLLM, FULL)),
        *((VIOLATE, name, rows[name]["violate"], "1") for name in SYSTEMS),
        *((SAVED, x, 1 - held[BLITZ], "1") for x in ("abstract", "§6.2")),
        (POINTS, "", held[SLLM] - held[BLITZ], "1"),
        (RELATIVE, "", 1 - held[BLITZ] / held[SLLM], "1"),
        *((f"{TTFT}, {name}", "", rows[name][f"{TTFT} {statistic}"], "s") for name in (FULL, BLITZ, HALF)),
    ]
    for other, against in AGAINST.items():
        for what in (TTFT, TBT):
            column = f"{what} {statistic}"
            known.append((f"{what} reduction {against}", "", 1 - rows[BLITZ][column] / rows[other][column], "1"))
    return tables | {"totals": totals, "headline": headline(known)}
