"""Small memory and long round trips: when chains beat whole models, and how long they should be."""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains import common
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.chains import bounds, compose, tune, whole_models
from workbench.errors import UserError
from workbench.results import Verdict

TRIPS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
MEMORIES_GB = (4.0, 6.0, 8.0, 10.0, 12.0, 15.0, 16.0, 20.0, 24.0)
FEW_PER_S = 0.05
"""Arrivals so few that cache never runs short."""
CHAINS, WHOLE = "chains, best c", "whole model on each server"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["memory"].filter(pl.col("whole_s").is_null() & pl.col("lower_s").is_not_null())
    trips = tables["trips"].filter(pl.col("lower_s").is_not_null()).sort("round_trip_s")
    if not len(trips):
        return "No chain of these servers hosts the model or keeps up with the arrivals."
    first, last = trips.row(0, named=True), trips.row(-1, named=True)
    text = (
        f"With round trips of {first['round_trip_s'] * 1e3:g} ms the quickest chain has {first['hops']} servers, with "
        f"{last['round_trip_s'] * 1e3:g} ms {last['hops']}"
    )
    if len(table):
        text += (
            f"; below {table['memory_gb'].max():g} GB and there no server holds the whole model, and chains serve it"
        )
    return f"{text}."


def _shape(draft: Draft) -> list[Verdict]:
    trips = draft.tables["trips"].filter(pl.col("lower_s").is_not_null()).sort("round_trip_s")
    hops = trips["hops"].to_list()
    falling = all(a >= b for a, b in itertools.pairwise(hops))
    claim = "longer round trips favour chains of no more servers"
    reason = "servers of the quickest chain at the best c"
    if not falling:
        few = draft.rerun({"arrival_rate_per_s": FEW_PER_S})["trips"].sort("round_trip_s")["hops"].to_list()
        reason += (
            ". Assumed here: the arrival rate stays the same, so that longer jobs must share more cache, which only "
            f"chains have; with arrival_rate_per_s = {FEW_PER_S} the chains have {', '.join(map(str, few))} servers"
        )
    return [
        Verdict(
            claim=claim,
            published=claim,
            ours=", ".join(map(str, hops)),
            strength="ordering",
            verdict="reproduced" if falling else "differs",
            reason=reason,
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "chains/edge-cloud",
    title="Chains at the edge",
    question="With small servers far away, how many should a job pass, and when is the whole model on each better?",
    backends=("analytic",),
    seconds={"analytic": 0.2},
    draw="chains_tuning.edge_cloud",
    panels=("trips", "memory"),
    say=_say,
    judges=(_shape,),
)
def edge_cloud(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    model: Annotated[str, Par("Model", profile="model", source="the testbed's; chosen here for small servers")] = (
        "llama-2-7b"
    ),
    servers: common.Servers = 12,
    memory_gb: Annotated[float, Par("Memory of each", "GB", low=2, high=80, step=1, source="chosen")] = 16.0,
    round_trip_s: Annotated[
        float, Par("Round trip of each", "s", low=0.001, high=1.0, log=True, source="chosen: a far cloud")
    ] = 0.05,
    arrival_rate_per_s: Annotated[
        float, Par("Arrivals", "1/s", low=0.05, high=20, log=True, source="chosen: half of what 16 GB hold")
    ] = 1.0,
    tokens_in: common.TokensIn = 500,
    tokens_out: common.TokensOut = 50,
) -> dict[str, pl.DataFrame]:
    """Best c, its lower bound and its quickest chain against the round trip and against memory; whole models beside.

    All servers are alike, with the compute of the cluster's smallest kind.
    """
    given = common.setting(context, cluster, model, servers, 0.0, tokens_in=tokens_in, tokens_out=tokens_out)
    columns = {"round_trip_s": pl.Float64, "memory_gb": pl.Float64, "reserved": pl.Int64, "hops": pl.Int64}
    columns |= dict.fromkeys(("lower_s", "whole_s"), pl.Float64)
    places = [(trip, memory_gb) for trip in sorted({*TRIPS_S, round_trip_s})]
    trips = pl.DataFrame([_row(context, given, *place, arrival_rate_per_s) for place in places], columns, orient="row")
    places = [(round_trip_s, memory) for memory in sorted({*MEMORIES_GB, memory_gb})]
    memory = pl.DataFrame([_row(context, given, *place, arrival_rate_per_s) for place in places], columns, orient="row")
    known = []
    for axis, table in (("round_trip_s", trips), ("memory_gb", memory)):
        text = "round-trip" if axis == "round_trip_s" else "memory"
        for name, column in ((CHAINS, "lower_s"), (WHOLE, "whole_s")):
            rows = table.filter(pl.col(column).is_not_null()).select(axis, column).rows()
            known += [(f"lower bound of the mean response, {name}, x = {text}", x, value, "s") for x, value in rows]
    return {"trips": trips, "memory": memory, "headline": headline(known)}


def _row(context: Context, given: common.Setting, round_trip_s: float, memory_gb: float, rate: float) -> tuple:
    context.check()
    fast = np.zeros(given.servers, dtype=bool)
    seen = common.at_sites(given, fast, np.full(given.servers, round_trip_s))
    fleet = seen.fleet.model_copy(update={"memory_bytes": np.full(given.servers, round(memory_gb * 1e9))})
    nothing = (round_trip_s, memory_gb, None, None, None, None)
    if fleet.most_reserved < 1:
        return nothing
    tried = np.unique(np.geomspace(1, fleet.most_reserved, 24).astype(np.int64)).tolist()
    try:
        best = tune(fleet, rate, reserved=tried)
    except UserError:
        return nothing
    c = best.best["lower bound"]
    whole = whole_models(fleet)
    whole_s = None
    if whole.chains and rate < whole.rate_per_s:
        whole_s = bounds(whole.rates_per_s, whole.capacities, rate).response_lower_s
    if c is None:
        return (round_trip_s, memory_gb, None, None, None, whole_s)
    lower = best.table.filter(pl.col("reserved") == c)["lower_s"][0]
    return round_trip_s, memory_gb, c, len(compose(fleet, c).chains[0].servers), lower, whole_s
