"""Dispatch policies against the load."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.chains import common
from workbench.catalogue.chains.responding import jobs_at, path_of, respond
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Match, Ordering, experiment
from workbench.chains import POLICIES, chains_of, compose

LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)
NAMES = {
    "jffc": "JFFC",
    "sed": "SED",
    "sa-jsq": "SA-JSQ",
    "jsq": "JSQ",
    "jiq": "JIQ",
    "weighted-round-robin": "weighted round robin",
    "round-robin": "round robin",
    "random": "random",
}
PAPER = ("jffc", "sed", "sa-jsq", "jsq", "jiq")
SERIES = {policy: f"mean response, {NAMES[policy]}, x = load" for policy in NAMES}
SERVICE = "share of service in JFFC's mean response, x = load"
LIGHT = "share of service in JFFC's mean response, load below 0.7"
TWO = "share of service in JFFC's mean response, c=2"
FEW = {"full": (2, 3000), "quick": (1, 1500)}
"""Draws and jobs that SimPy follows."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["response"]
    table = table.filter(pl.col("backend") == table["backend"][0])
    means = dict(
        table.filter(pl.col("load") == 0.5)
        .group_by("policy", maintain_order=True)
        .agg(pl.col("response_s").mean())
        .rows()
    )
    best = min(means, key=means.get)
    worst = max(means, key=means.get)
    text = f"At load 0.5 a job stays {means[best]:.3g} s with {NAMES[best]}"
    return f"{text}." if best == worst else f"{text} and {means[worst]:.3g} s with {NAMES[worst]}."


_NOISE = "6 draws of 20,000 jobs; at this load the mean still depends on single bursts"


@experiment(
    "chains/dispatchers",
    title="Which chain should a job join?",
    question="How long do jobs stay under each dispatch policy, and how much of that is waiting?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 3, "simpy": 30},
    draw="chains_dispatch.dispatchers",
    panels=("response", "chains"),
    say=_say,
    stochastic=True,
    matches=(
        Match((SERIES["jiq"],), incomparable={"0.9": "JIQ is close to unstable there: " + _NOISE}),
        Match((LIGHT,), tolerance=0.0),
        Match(tolerance=0.1, note="sites and jobs are drawn anew"),
    ),
    orderings=(
        Ordering("JFFC is best at load 0.5, then SED, then JSQ",
                 (SERIES["jffc"], SERIES["sed"], SERIES["jsq"]), "0.5"),
        Ordering("JFFC is better than JSQ at load 0.3", (SERIES["jffc"], SERIES["jsq"]), "0.3"),
        Ordering("JFFC, SA-JSQ, then SED at load 0.7", (SERIES["jffc"], SERIES["sa-jsq"], SERIES["sed"]), "0.7"),
        Ordering("JIQ explodes at load 0.9", (SERIES["jffc"], SERIES["jsq"], SERIES["jiq"]), "0.9"),
    ),
    agrees=(
        Agree("mean response of the same jobs", "twins", ("policy", "load", "draw"), "response_s",
              {("compiled", "simpy"): (-1e-9, 1e-9)}),
    ),
)  # fmt: skip
def dispatchers(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    model: common.Served = "bloom-176b",
    servers: common.Servers = 20,
    fast_share: common.FastShare = 0.2,
    reserved: common.Reserved = 7,
    orchestrator: common.Orchestrator = "random",
    types: common.Types = "random",
    policies: Annotated[
        tuple[str, ...], Par("Policies", choices=tuple(POLICIES), free=True, source="the paper compares five")
    ] = PAPER,
    jobs: Annotated[
        int, Par("Jobs of each run", low=2000, high=200_000, step=1000, free=True, source="chosen: noise about 2 %")
    ] = 20_000,
    draws: common.Draws = 6,
) -> dict[str, pl.DataFrame]:
    """Mean response, wait and service by load and policy; every policy meets the same jobs at the same sites."""
    given = common.setting(context, cluster, model, servers, fast_share, orchestrator=orchestrator, types=types)
    few_draws, few_jobs = FEW[context.mode]
    every = common.draws(context, given, draws)
    twins = _table(context, every[:few_draws], reserved, policies, min(jobs, few_jobs))
    table = twins if context.backend == "simpy" else _table(context, every, reserved, policies, jobs)
    known = [
        (SERIES[policy], load, float(part["response_s"].mean()), "s")
        for (policy, load), part in table.group_by("policy", "load", maintain_order=True)
    ]
    if "jffc" in policies:
        shares = table.filter(pl.col("policy") == "jffc").group_by("load", maintain_order=True)
        shares = dict(shares.agg(pl.col("service_s").mean() / pl.col("response_s").mean()).rows())
        known += [(SERVICE, load, share, "1") for load, share in shares.items()]
        known.append((LIGHT, "", min(share for load, share in shares.items() if load < 0.7), "1"))
        if context.backend == "compiled" and reserved == 7:
            two = _table(context, every, 2, ("jffc",), jobs, loads=(0.7,))
            known.append((TWO, "load 0.7", two["service_s"].mean() / two["response_s"].mean(), "1"))
    return {"response": table, "twins": twins, "taken": _taken(table), "headline": headline(known)}


def _table(context: Context, every, reserved: int, policies, jobs: int, loads=LOADS) -> pl.DataFrame:
    rows = []
    for number, draw in enumerate(every):
        made = compose(draw.fleet, reserved)
        if not made.chains:
            raise common.unable("Dispatch")
        chains = chains_of(made)
        for load in loads:
            drawn = jobs_at(context, load * chains.rate_per_s, jobs, part=number)
            for policy in policies:
                context.tell(f"draw {number + 1} of {len(every)}, load {load:g}, {NAMES[policy]}")
                path = path_of(context, drawn, chains, policy)
                found = respond(path)
                fast = float((path.place == 0).mean())
                rows.append((policy, load, number, found.response_s, found.wait_s, found.service_s, fast))
    columns = ["policy", "load", "draw", "response_s", "wait_s", "service_s", "first_chain_share"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def _taken(table: pl.DataFrame) -> pl.DataFrame:
    """Share of jobs on the fastest chain, by policy and load."""
    return table.group_by("policy", "load", maintain_order=True).agg(pl.col("first_chain_share").mean())
