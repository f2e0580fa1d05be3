"""The best number of jobs to reserve for, against the arrival rate."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.catalogue.chains import common
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.monotone import monotone
from workbench.catalogue.spec import Match, experiment
from workbench.chains import tune
from workbench.results import Verdict

RATES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
RULES = ("lower bound", "upper bound", "surrogate")
SERIES = "best c by the lower bound, x = arrival rate in 1/s"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["best"]
    first = table.filter((pl.col("draw") == 0) & (pl.col("rule") == "lower bound") & pl.col("reserved").is_not_null())
    turns = first.unique("reserved", keep="first", maintain_order=True).select("rate_per_s", "reserved").rows()
    steps = [f"{c} from {rate:g}/s" for rate, c in turns]
    return f"By the lower bound the best c is a staircase: {', '.join(steps)}."


def _rising(draft: Draft) -> list[Verdict]:
    table = draft.tables["best"].filter((pl.col("rule") == "lower bound") & pl.col("reserved").is_not_null())
    keys = ["draw", *(name for name in ("replication",) if name in table.columns)]
    runs = [part.sort("rate_per_s")["reserved"].to_list() for _, part in table.group_by(keys, maintain_order=True)]
    claim = "the lower bound's best c does not fall with the arrival rate"
    return [monotone(draft, claim, runs, blame="chains are formed of all servers whatever the rate is")]


@experiment(
    "chains/c-star",
    title="When is a shorter chain better than more room for jobs?",
    question="Which c is best at which arrival rate, by each rule?",
    backends=("analytic",),
    seconds={"analytic": 0.6},
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
    """The best c by lower bound, upper bound and surrogate at ten rates."""
    given = common.setting(context, cluster, model, servers, fast_share, orchestrator=orchestrator, types=types)
    rows = []
    for number, draw in enumerate(common.draws(context, given, draws)):
        for rate in RATES:
            context.check()
            best = tune(draw.fleet, rate, most_load).best
            rows += [(number, rate, rule, best[rule]) for rule in RULES]
    columns = {"draw": pl.Int64, "rate_per_s": pl.Float64, "rule": pl.String, "reserved": pl.Int64}
    table = pl.DataFrame(rows, schema=columns, orient="row")
    first = table.filter((pl.col("draw") == 0) & (pl.col("rule") == "lower bound") & pl.col("reserved").is_not_null())
    known = [(SERIES, rate, c, "1") for rate, c in first.select("rate_per_s", "reserved").rows()]
    return {"best": table, "headline": headline(known)}
