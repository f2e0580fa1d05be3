"""The best number of jobs to reserve for, against the arrival rate."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.catalogue.chains import common
from workbench.catalogue.chains.responding import jobs_at, path_of, respond
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.monotone import monotone
from workbench.catalogue.spec import Match, experiment
from workbench.chains import Fleet, chains_of, compose, tune_each
from workbench.results import Verdict

RATES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
RULES = ("lower bound", "upper bound", "surrogate")
SIMULATED = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20)
LONG, FEW_RATES = {"full": 200_000, "quick": 20_000}, {"full": RATES, "quick": RATES[1::3]}
COLUMNS = {"draw": pl.Int64, "rate_per_s": pl.Float64, "rule": pl.String, "reserved": pl.Int64}
SERIES = "best c by the lower bound, x = arrival rate in 1/s"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["best"].filter((pl.col("draw") == 0) & pl.col("reserved").is_not_null())
    if not len(table):
        return "No c keeps up with any of these arrival rates."
    rule = table["rule"][0]
    first = table.filter(pl.col("rule") == rule)
    turns = first.unique("reserved", keep="first", maintain_order=True).select("rate_per_s", "reserved").rows()
    steps = [f"{c} from {rate:g}/s" for rate, c in turns]
    by = "simulation" if rule == "simulation" else f"the {rule}"
    return f"By {by} the best c is a staircase: {', '.join(steps)}."


def _rising(draft: Draft) -> list[Verdict]:
    table = draft.tables["best"].filter((pl.col("rule") == "lower bound") & pl.col("reserved").is_not_null())
    keys = ["draw", *(name for name in ("replication",) if name in table.columns)]
    runs = [part.sort("rate_per_s")["reserved"].to_list() for _, part in table.group_by(keys, maintain_order=True)]
    claim = "the lower bound's best c does not fall with the arrival rate"
    if not runs:
        return []
    return [monotone(draft, claim, runs, blame="chains are formed of all servers whatever the rate is")]


@experiment(
    "chains/c-star",
    title="When is a shorter chain better than more room for jobs?",
    question="Which c is best at which arrival rate, by each rule?",
    backends=("analytic", "compiled"),
    seconds={"analytic": 0.2, "compiled": 6},
    draw="chains_tuning.staircase",
    say=_say,
    stochastic=True,
    matches=(Match((SERIES,), tolerance=0.15, note="sites are drawn anew"),),
    judges=(_rising,),
)
def c_star(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    model: common.Served = "bloom-176b",
    servers: common.Servers = 20,
    fast_share: common.FastShare = 0.2,
    most_load: common.MostLoad = 0.7,
    orchestrator: common.Orchestrator = "best-connected",
    types: common.Types = "nearest",
    draws: common.Draws = 3,
) -> dict[str, pl.DataFrame]:
    """The best c by lower bound, upper bound and surrogate at ten rates; and by simulation, for the first draw.

    Near its minimum the response is flat: the simulated c is that of the least mean, ties included.
    """
    given = common.setting(context, cluster, model, servers, fast_share, orchestrator=orchestrator, types=types)
    if context.backend == "compiled":
        table = _simulated(context, common.draws(context, given, 1)[0].fleet)
        found = table.filter(pl.col("reserved").is_not_null()).rows()
        known = [("best c by simulation, x = arrival rate in 1/s", rate, c, "1") for _, rate, _, c in found]
        return {"best": table, "headline": headline(known)}
    rows = []
    for number, draw in enumerate(common.draws(context, given, draws)):
        context.check()
        for rate, found in zip(RATES, tune_each(draw.fleet, RATES, most_load), strict=True):
            rows += [(number, rate, rule, found.best[rule]) for rule in RULES]
    table = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    first = table.filter((pl.col("draw") == 0) & (pl.col("rule") == "lower bound") & pl.col("reserved").is_not_null())
    known = [(SERIES, rate, c, "1") for rate, c in first.select("rate_per_s", "reserved").rows()]
    return {"best": table, "headline": headline(known)}


def _simulated(context: Context, fleet: Fleet) -> pl.DataFrame:
    """The c of the least simulated mean response, at each rate on the same jobs for every c."""
    made = {c: one for c, one in ((c, compose(fleet, c)) for c in SIMULATED if c <= fleet.most_reserved) if one.chains}
    rows = []
    for rate in FEW_RATES[context.mode]:
        found = {}
        jobs = jobs_at(context, rate, LONG[context.mode])
        for c, one in made.items():
            if rate < 0.98 * one.rate_per_s:
                context.tell(f"{rate:g} jobs/s, c = {c}")
                found[c] = respond(path_of(context, jobs, chains_of(one))).response_s
        rows.append((0, rate, "simulation", min(found, key=found.get) if found else None))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")
