"""Theorem 4 beside simulated JFFC, small systems solved exactly, and where a slow free slot hurts."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains import common
from workbench.catalogue.chains.responding import jobs_at, path_of, respond
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Match, experiment
from workbench.chains import bounds as theorem_4
from workbench.chains import break_even_rate, chains_of, chains_with, compose, threshold_response
from workbench.chains import exact as solved
from workbench.queueing import mmc
from workbench.results import Verdict

LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)
FINE = tuple(round(0.05 * k, 2) for k in range(1, 20))
LOWER, JFFC, UPPER = (f"mean response, {name}, x = load" for name in ("lower bound", "JFFC simulated", "upper bound"))
EXACT = "exact mean response"
SMALL = {
    "mu (1, .5), slots (1, 1), rate 0.3": ((1.0, 0.5), (1, 1), 0.3),
    "mu (1, .5), slots (1, 1), rate 0.75": ((1.0, 0.5), (1, 1), 0.75),
    "mu (1, .5), slots (1, 1), rate 1.2": ((1.0, 0.5), (1, 1), 1.2),
    "mu (1, .5), slots (2, 3), rate 1.5": ((1.0, 0.5), (2, 3), 1.5),
    "mu (1, .5), slots (2, 3), rate 2.5": ((1.0, 0.5), (2, 3), 2.5),
    "mu (.1, .06, .05), slots (4, 3, 3), rate 0.4": ((0.1, 0.06, 0.05), (4, 3, 3), 0.4),
    "mu (1, 1), slots (2, 3), rate 3": ((1.0, 1.0), (2, 3), 3.0),
}
BREAK_EVEN = "rate of the slow slot above which using it pays, fast rate 1, x = arrival rate"
FEW = {"full": 3000, "quick": 1500}
LONG = {"full": 400_000, "quick": 200_000}
"""Jobs of the paths that are held against exact small systems."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    text = f"On {parameters['servers']} servers "
    curve, paths = tables.get("bounds"), tables.get("response")
    if curve is not None:
        row = curve.filter(pl.col("load") == 0.7).mean().row(0, named=True)
        text += f"at load 0.7 the mean response lies between {row['lower_s']:.3g} and {row['upper_s']:.3g} s"
    if paths is not None:
        mean = paths.filter(pl.col("load") == 0.7)["response_s"].mean()
        text += f"{', simulated' if curve is not None else 'at load 0.7 a simulated job stays'} {mean:.4g} s"
    return f"{text}."


def _inside(draft: Draft) -> list[Verdict]:
    """Lower <= JFFC <= upper within three standard errors, and nearer the lower one."""
    common_ = {"mode": draft.mode, "seeds": draft.seeds, "strength": "ordering"}
    claims = ("lower bound <= JFFC <= upper bound", "JFFC lies nearer the lower bound")
    if "bounds" not in draft.tables or "response" not in draft.tables:
        why = "needs both the formula and a simulation"
        return [
            Verdict(claim=claim, published=claim, ours="", verdict="not comparable", reason=why, **common_)
            for claim in claims
        ]
    keys = ["load", "draw", *(name for name in ("replication",) if name in draft.tables["bounds"].columns)]
    both = draft.tables["response"].join(draft.tables["bounds"], on=keys)
    first = both["backend"][0]
    both = both.filter(pl.col("backend") == first)
    three = 3 * pl.col("error_s")
    inside = both.select(
        (
            (pl.col("lower_s") - three <= pl.col("response_s")) & (pl.col("response_s") <= pl.col("upper_s") + three)
        ).sum()
    ).item()
    middle = (pl.col("lower_s") + pl.col("upper_s")) / 2
    nearer, maybe = (
        both.select((pl.col("response_s") - error <= middle).sum()).item() for error in (pl.lit(0.0), three)
    )
    why = ("within three standard errors", f"within three standard errors {maybe} of them")
    return [
        Verdict(
            claim=claim,
            published=claim,
            ours=f"{count} of {len(both)} runs",
            verdict=reading,
            reason=f"{text}. Assumed here: Poisson arrivals and exponential sizes",
            **common_,
        )
        for claim, count, text, reading in zip(
            claims,
            (inside, nearer),
            why,
            (
                "reproduced" if inside == len(both) else "differs",
                "reproduced" if nearer == len(both) else "undecided" if maybe == len(both) else "differs",
            ),
            strict=True,
        )
    ]


@experiment(
    "chains/bounds",
    title="How good are the bounds?",
    question="Between which values does the mean response lie, and where in between?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.5, "compiled": 2, "simpy": 10},
    draw="chains_dispatch.bounds",
    panels=("response", "slow slot"),
    say=_say,
    stochastic=True,
    matches=(
        Match((LOWER, JFFC, UPPER), tolerance=0.1, note="sites and jobs are drawn anew"),
        Match((BREAK_EVEN,), tolerance=0.001),
        Match(tolerance=0.001),
    ),
    judges=(_inside,),
    agrees=(
        Agree("mean response of small systems (paths within 4 %)", "small", ("system",), "response_s",
              {("analytic", "compiled"): (-0.04, 0.04)}),
        Agree("mean response of the same jobs", "twins", ("load", "draw"), "response_s",
              {("compiled", "simpy"): (-1e-9, 1e-9)}),
    ),
)  # fmt: skip
def bounds(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    model: common.Served = "bloom-176b",
    servers: common.Servers = 20,
    fast_share: common.FastShare = 0.2,
    reserved: common.Reserved = 7,
    orchestrator: common.Orchestrator = "random",
    types: common.Types = "random",
    slow_load: Annotated[
        float, Par("Two slots: arrival rate over the fast one's", low=0.05, high=0.95, step=0.05, free=True)
    ] = 0.3,
    jobs: Annotated[
        int, Par("Jobs of each run", low=2000, high=2_000_000, step=1000, free=True, source="chosen: noise below 1 %")
    ] = 400_000,
    draws: common.Draws = 6,
) -> dict[str, pl.DataFrame]:
    """Bounds by load (formula), JFFC at five loads (simulation), exact small systems, and two slots in detail."""
    given = common.setting(context, cluster, model, servers, fast_share, orchestrator=orchestrator, types=types)
    every = [chains_of(_chains(draw.fleet, reserved)) for draw in common.draws(context, given, draws)]
    if context.backend == "analytic":
        curve = pl.DataFrame(
            [
                (load, number, edges.response_lower_s, edges.response_upper_s)
                for number, chains in enumerate(every)
                for load in FINE
                for edges in (theorem_4(chains.rates_per_s, chains.slots, load * chains.rate_per_s),)
            ],
            schema=["load", "draw", "lower_s", "upper_s"],
            orient="row",
        )
        small = [(name, solved(*system).mean_response_s) for name, system in SMALL.items()]
        tables = {"bounds": curve, "small": pl.DataFrame(small, schema=["system", "response_s"], orient="row")}
        return {**tables, "slow": _slow(slow_load), "headline": headline(_formulas(curve, slow_load))}
    twins = _paths(context, every[:2], min(jobs, FEW[context.mode]))
    count = min(jobs, 100_000) if context.mode == "quick" else jobs
    table = twins if context.backend == "simpy" else _paths(context, every, count)
    known = [
        (JFFC, load, float(part["response_s"].mean()), "s")
        for (load,), part in table.group_by("load", maintain_order=True)
    ]
    tables = {"response": table, "twins": twins, "headline": headline(known)}
    if context.backend == "compiled":
        tables["small"] = pl.DataFrame(_small_paths(context), schema=["system", "response_s"], orient="row")
    return tables


def _chains(fleet, reserved: int):
    made = compose(fleet, reserved)
    if not made.chains:
        raise common.unable("Bounds")
    return made


def _paths(context: Context, every, jobs: int) -> pl.DataFrame:
    rows = []
    for number, chains in enumerate(every):
        for load in LOADS:
            context.tell(f"draw {number + 1} of {len(every)}, load {load:g}")
            found = respond(path_of(context, jobs_at(context, load * chains.rate_per_s, jobs, part=number), chains))
            rows.append((load, number, found.response_s, found.error_s))
    return pl.DataFrame(rows, schema=["load", "draw", "response_s", "error_s"], orient="row")


def _small_paths(context: Context) -> list[tuple[str, float]]:
    rows = []
    for name, (rates, slots, arrivals) in SMALL.items():
        context.tell(name)
        path = path_of(context, jobs_at(context, arrivals, LONG[context.mode]), chains_with(rates, slots))
        rows.append((name, respond(path).response_s))
    return rows


def _slow(arrivals: float) -> pl.DataFrame:
    """A fast slot of rate 1 and a slow one: exact JFFC, its bounds, the fast slot alone, and the best dispatch."""
    rows = []
    for slow in np.unique(
        np.round(np.concatenate([np.linspace(0.02, 0.2, 10), np.linspace(0.2, 1.0, 17)]), 3)
    ).tolist():
        edges, jffc = theorem_4((1.0, slow), (1, 1), arrivals), solved((1.0, slow), (1, 1), arrivals)
        rows.append((slow, edges.response_lower_s, jffc.mean_response_s, edges.response_upper_s, _best(arrivals, slow)))
    table = pl.DataFrame(rows, schema=["slow_rate", "lower_s", "jffc_s", "upper_s", "best_s"], orient="row")
    return table.with_columns(alone_s=pl.lit(1 / (1 - arrivals)), break_even=pl.lit(break_even_rate(arrivals)))


def _best(arrivals: float, slow: float) -> float:
    """The shortest response of any threshold; by the threshold it falls and then rises."""
    found = threshold_response(arrivals, slow, 1)
    for threshold in range(2, 200):
        after = threshold_response(arrivals, slow, threshold)
        if after >= found:
            break
        found = after
    return found


def _formulas(curve: pl.DataFrame, slow_load: float) -> list[tuple[str, object, float, str]]:
    known: list[tuple[str, object, float, str]] = []
    for load in LOADS:
        part = curve.filter(pl.col("load") == load)
        known += [(LOWER, load, float(part["lower_s"].mean()), "s"), (UPPER, load, float(part["upper_s"].mean()), "s")]
    for name, (rates, slots, arrivals) in SMALL.items():
        found, edges = solved(rates, slots, arrivals), theorem_4(rates, slots, arrivals)
        known += [
            (EXACT, name, found.mean_response_s, "s"),
            ("lower bound of the mean response", name, edges.response_lower_s, "s"),
            ("upper bound of the mean response", name, edges.response_upper_s, "s"),
            ("exact probability of waiting", name, found.wait_probability, "1"),
        ]
    known += [(BREAK_EVEN, rate, break_even_rate(rate), "1") for rate in sorted({0.3, 0.6, 0.8, slow_load})]
    two = solved((1.0, 0.1), (1, 1), 0.3).mean_response_s
    known.append(("mean response of JFFC, rates 1 and 0.1", "rate 0.3", two, "s"))
    known.append(("mean response of the fast slot alone (M/M/1)", "rate 0.3", mmc(0.3, 1.0, 1).mean_response_s, "s"))
    return known
