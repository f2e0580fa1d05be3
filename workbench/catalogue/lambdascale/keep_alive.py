"""Keep-alive against cold starts and cost: the simulation of λScale's artifact, and what one of its rules is worth."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.caching.model import KeepAlive, KeepAliveRun, keep_alive
from workbench.caching.policy import COLD, STARTS
from workbench.caching.simulated import simulate_keep_alive
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.monotone import monotone
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Match, experiment
from workbench.catalogue.tracing import replayed
from workbench.errors import UserError
from workbench.results import Verdict
from workbench.workloads import Trace

_SOURCE = "artifact simulation/simulation.py"
FROM_LOAD, FROM_USE = "counted from the load (artifact)", "counted from the last use"
COLD_SHARE = "cold starts as a share of all, x = keep-alive in s"
OVER_SHARE = "share of time over-provisioned, x = keep-alive in s"
MEMORY = "memory held, x = keep-alive in s"


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["sweep"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("tier") == STARTS[COLD]))
    longest = table["keep_alive_s"].max()
    last = {row["rule"]: row for row in table.filter(pl.col("keep_alive_s") == longest).to_dicts()}
    return (
        f"On {table['trace'][0]}, {longest} s in host memory leave {last[FROM_LOAD]['share']:.1%} of starts cold when "
        f"they count from the load, as in the artifact, and {last[FROM_USE]['share']:.1%} when they count from the "
        f"last use, with more copies than work in {last[FROM_LOAD]['over_share']:.1%} and "
        f"{last[FROM_USE]['over_share']:.1%} of the time."
    )


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["sweep"]
    table = table.filter(
        (pl.col("backend") == table["backend"][0]) & (pl.col("rule") == FROM_LOAD) & (pl.col("tier") == STARTS[COLD])
    ).sort("keep_alive_s")
    return [
        monotone(draft, "cold starts fall as keep-alive grows", [table["share"].to_list()], falling=True),
        monotone(draft, "time over-provisioned rises as keep-alive grows", [table["over_share"].to_list()]),
        monotone(draft, "memory held rises as keep-alive grows", [table["held_bytes_s"].to_list()]),
    ]


@experiment(
    "lambdascale/keep-alive",
    title="Does keeping models in memory pay?",
    question="How many starts are cold, and how much memory is held, when nodes keep a model for a while?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 0.1, "simpy": 3},
    draw="keeping.keep_alive",
    panels=("starts", "cost", "over"),
    say=_say,
    matches=(Match(tolerance=0.002, note="the values are those of the artifact's own script, run by us"),),
    judges=(_judge,),
    agrees=(
        Agree(
            "starts from each tier", "sweep", ("rule", "keep_alive_s", "tier"), "share",
            {("compiled", "simpy"): (-1e-9, 1e-9)},
        ),
        Agree(
            "memory held", "sweep", ("rule", "keep_alive_s", "tier"), "held_bytes_s",
            {("compiled", "simpy"): (-1e-9, 1e-9)},
        ),
    ),
)  # fmt: skip
def keep_alive_sweep(
    context: Context,
    *,
    trace: Annotated[
        str, Par("Trace", trace=True, status="published", source=f"{_SOURCE}: its trace.txt is this conversation hour")
    ] = "azure-conv-2023",
    first_request: Annotated[
        int, Par("First request", low=0, high=10_000, status="published", source=f"{_SOURCE}: requests 1,500 to 2,499")
    ] = 1500,
    requests: Annotated[
        int, Par("Requests", low=10, high=20_000, status="published", source=f"{_SOURCE}: a thousand")
    ] = 1000,
    stretch: Annotated[
        float,
        Par(
            "Seconds of the replay a second of the trace",
            low=0.5,
            high=60,
            step=0.5,
            status="published",
            source=f"{_SOURCE}: stamps times ten; its unit of time is a second for all else",
        ),
    ] = 10.0,
    nodes: Annotated[int, Par("Nodes", low=1, high=300, status="published", source=_SOURCE)] = 100,
    ssd_to_memory_s: Annotated[int, Par("SSD to memory", "s", low=0, high=60, status="published", source=_SOURCE)] = 20,
    memory_to_gpu_s: Annotated[int, Par("Memory to GPU", "s", low=0, high=30, status="published", source=_SOURCE)] = 5,
    serve_s: Annotated[int, Par("Serving", "s", low=1, high=60, status="published", source=_SOURCE)] = 3,
    gpu_keep_s: Annotated[
        int, Par("Keep-alive on the GPU", "s", low=0, high=60, status="published", source=_SOURCE)
    ] = 0,
    by_locality: Annotated[
        bool, Par("Ask the node with the nearest copy", source=f"{_SOURCE}: the first idle node, whatever it holds")
    ] = False,
    model_bytes: Annotated[
        float, Par("A copy", "bytes", low=1e9, high=1e12, log=True, status="published", source=f"{_SOURCE}: 140 GB")
    ] = 140e9,
    keep_alives_s: Annotated[
        tuple[int, ...], Par("Keep-alive in memory", "s", free=True, status="published", source=_SOURCE)
    ] = (0, 10, 20, 30, 60, 120),
) -> dict[str, pl.DataFrame]:
    """Tiers of all starts, copies held and time over-provisioned, by keep-alive, under two ways to count it.

    One model serves all requests of the trace. A second counts as over-provisioned when host memories hold more copies
    than nodes serve from their GPU; nodes that are still loading count for nothing, as in the artifact.
    """
    found = replayed(context, trace, published=("azure-conv-2023",))
    arrival = _seconds(found, stretch)[first_request : first_request + requests]
    if not arrival.size:
        raise UserError(f"lambdascale/keep-alive: the trace has {len(found):,} requests; lower first_request.")
    arrival = arrival - arrival[0]
    rows, known = [], []
    for rule in (FROM_LOAD, FROM_USE):
        for keep_s in sorted(set(keep_alives_s)):
            context.tell(f"keep-alive of {keep_s} s, {rule}")
            cluster = KeepAlive(
                nodes=nodes, memory_keep_s=keep_s, gpu_keep_s=gpu_keep_s, ssd_to_memory_s=ssd_to_memory_s,
                memory_to_gpu_s=memory_to_gpu_s, serve_s=serve_s, from_last_use=rule == FROM_USE,
                by_locality=by_locality,
            )  # fmt: skip
            run = (keep_alive if context.backend == "compiled" else simulate_keep_alive)(arrival, cluster)
            rows += _rows(run, rule, keep_s, model_bytes)
            if rule == FROM_LOAD:
                known.append((COLD_SHARE, keep_s, run.shares()[STARTS[COLD]], "1"))
                known.append((OVER_SHARE, keep_s, run.over_s / run.seconds, "1"))
                known.append((MEMORY, keep_s, run.copy_s * model_bytes, "bytes s"))
    table = pl.DataFrame(rows).with_columns(trace=pl.lit(context.traces[0]))
    return {"sweep": table, "headline": headline(known)}


def _seconds(trace: Trace, stretch: float) -> np.ndarray:
    """Whole seconds of the replay in which requests arrive.

    The artifact cuts every stamp to a millisecond before it takes differences. That decides on which side of a second
    some arrivals fall, and moves the cold starts at 60 s by a point and a half.
    """
    first_s = trace.origin.start_s % 86_400
    stamps_ms = np.floor((first_s + trace.requests["arrival_s"].to_numpy()) * 1000 + 1e-4)
    return np.floor((stamps_ms - stamps_ms[0]) * stretch / 1000 + 1e-9)


def _rows(run: KeepAliveRun, rule: str, keep_s: int, model_bytes: float) -> list[dict[str, Any]]:
    about = {"rule": rule, "keep_alive_s": keep_s}
    cost = {"over_share": run.over_s / run.seconds, "held_bytes_s": run.copy_s * model_bytes}
    return [about | {"tier": tier, "share": share} | cost for tier, share in run.shares().items()]
