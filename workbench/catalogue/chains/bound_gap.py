"""How far apart the bounds lie: by spread of speeds, by load, by number of slots."""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains.responding import jobs_at, path_of, respond
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.chains import bounds, chains_with, exact
from workbench.results import Verdict

SPREADS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SLOTS = (1, 2, 4, 8, 16, 32, 64, 128)
AXES = ("spread", "load", "slots")
MOST_STATES = 3000
LONG = {"full": 400_000, "quick": 60_000}
FEW = {"full": 3000, "quick": 1500}


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["gap"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("axis") == "spread"))
    row = table.filter(pl.col("spread") == table["spread"].max()).row(0, named=True)
    text = f"With speeds {row['spread']:g} to 1 at load {row['load']:g} "
    if row.get("upper_s") is None:
        return f"{text}a simulated job stays {row['response_s']:.3g} times a mean service."
    ratio = row["upper_s"] / row["lower_s"]
    return f"{text}the upper bound is {ratio:.2f} times the lower one; with equal speeds they meet."


def _shape(draft: Draft) -> list[Verdict]:
    """No gap for equal speeds, a larger one for a larger spread, and the exact value inside."""
    kind = {"mode": draft.mode, "seeds": draft.seeds, "strength": "ordering"}
    table = draft.tables["gap"].filter(pl.col("backend") == "analytic")
    if not len(table):
        return []
    spread = table.filter(pl.col("axis") == "spread").sort("spread")
    ratio = (spread["upper_s"] / spread["lower_s"]).to_list()
    solved = table.filter(pl.col("response_s").is_not_null())
    inside = (solved["lower_s"] <= solved["response_s"] * (1 + 1e-9)) & (
        solved["response_s"] <= solved["upper_s"] * (1 + 1e-9)
    )
    rising = abs(ratio[0] - 1) < 1e-9 and all(a < b for a, b in itertools.pairwise(ratio))
    return [
        Verdict(
            claim="the gap is nothing for equal speeds and grows with the spread",
            published="no gap for equal speeds, a larger one for a larger spread",
            ours=", ".join(f"{value:.3g}" for value in ratio),
            verdict="reproduced" if rising else "differs",
            reason="upper over lower bound by spread. Assumed here: one load for all spreads",
            **kind,
        ),
        Verdict(
            claim="the exact value lies between the bounds",
            published="lower <= exact <= upper",
            ours=f"{int(inside.sum())} of {len(solved)} systems",
            verdict="reproduced" if inside.all() else "differs",
            reason="to 1e-9, rounding of the linear solution. Assumed here: Poisson arrivals, exponential sizes",
            **kind,
        ),
    ]


@experiment(
    "chains/bound-gap",
    title="When do the bounds say something?",
    question="How far apart are the bounds of the mean response, by spread of speeds, load and slots?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.3, "compiled": 2, "simpy": 12},
    draw="chains_dispatch.bound_gap",
    panels=AXES,
    say=_say,
    stochastic=True,
    judges=(_shape,),
    agrees=(
        Agree("mean response where it is solved (paths within 6 %)", "solved", ("axis", "spread", "load", "slots"),
              "response_s", {("analytic", "compiled"): (-0.06, 0.06)}),
        Agree("mean response of the same jobs", "twins", ("axis", "spread", "load", "slots"), "response_s",
              {("compiled", "simpy"): (-1e-9, 1e-9)}),
    ),
)  # fmt: skip
def bound_gap(
    context: Context,
    *,
    chains: Annotated[int, Par("Chains", low=2, high=12, step=1, source="chosen")] = 4,
    slots: Annotated[int, Par("Slots of each", low=1, high=64, step=1, source="chosen: the exact chain is solved")] = 4,
    spread: Annotated[float, Par("Fastest over slowest speed", low=1.0, high=16, step=0.25, source="chosen")] = 3.0,
    load: Annotated[float, Par("Load", low=0.05, high=0.95, step=0.05, source="chosen")] = 0.7,
) -> dict[str, pl.DataFrame]:
    """Bounds, exact value where it can be solved, and simulation; one thing changes at a time, mean speed is 1."""
    points = [("spread", one, load, slots) for one in sorted({*SPREADS, spread})]
    points += [("load", spread, one, slots) for one in sorted({*LOADS, load})]
    points += [("slots", spread, load, one) for one in sorted({*SLOTS, slots})]
    few = [point for point in points if point[0] == "spread"][::3]
    columns = {"axis": pl.String, "spread": pl.Float64, "load": pl.Float64, "slots": pl.Int64}
    columns |= dict.fromkeys(("lower_s", "response_s", "upper_s", "error_s"), pl.Float64)
    if context.backend == "analytic":
        rows = [(*point, *_formula(chains, point)) for point in points]
        table = pl.DataFrame(rows, schema=columns, orient="row")
        known = [
            (f"upper over lower bound, x = {axis}", row[axis], row["upper_s"] / row["lower_s"], "1")
            for axis in AXES
            for row in table.filter(pl.col("axis") == axis).iter_rows(named=True)
        ]
        solved = table.filter(pl.col("response_s").is_not_null() & (pl.col("load") <= 0.8))
        return {"gap": table, "solved": solved, "headline": headline(known)}
    twins = pl.DataFrame(
        [_run(context, chains, point, FEW[context.mode]) for point in few], schema=columns, orient="row"
    )
    table = twins
    if context.backend == "compiled":
        rows = [_run(context, chains, point, LONG[context.mode]) for point in points]
        table = pl.DataFrame(rows, schema=columns, orient="row")
    known = [
        (f"mean response, x = {row['axis']}", row[row["axis"]], row["response_s"], "s")
        for row in table.iter_rows(named=True)
    ]
    tables = {"gap": table, "twins": twins, "headline": headline(known)}
    if context.backend == "compiled":
        able = [_solvable(chains, row["slots"]) and row["load"] <= 0.8 for row in table.iter_rows(named=True)]
        tables["solved"] = table.filter(pl.Series(able))
    return tables


def _speeds(chains: int, spread: float) -> np.ndarray:
    """Speeds in equal ratios from fastest to slowest, of mean 1."""
    speeds = np.geomspace(spread, 1.0, chains)
    return speeds / speeds.mean()


def _solvable(chains: int, slots: int) -> bool:
    return (slots + 1) ** chains <= MOST_STATES


def _formula(chains: int, point: tuple[str, float, float, int]) -> tuple[float, float | None, float, None]:
    _, spread, load, slots = point
    speeds, counts = _speeds(chains, spread), [slots] * chains
    rate = load * float(speeds.sum() * slots)
    edges = bounds(speeds, counts, rate)
    solved = exact(speeds, counts, rate).mean_response_s if _solvable(chains, slots) else None
    return edges.response_lower_s, solved, edges.response_upper_s, None


def _run(context: Context, chains: int, point: tuple[str, float, float, int], count: int) -> tuple:
    axis, spread, load, slots = point
    served = chains_with(_speeds(chains, spread), [slots] * chains)
    context.tell(f"{axis}: spread {spread:g}, load {load:g}, {slots} slots")
    path = path_of(context, jobs_at(context, load * served.rate_per_s, count), served)
    found = respond(path)
    return axis, spread, load, slots, None, found.response_s, None, found.error_s
