"""Do intervals keep their word? Coverage of a wait that is known exactly, by three ways to make a 95 % interval."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.queueing import Exponential, draw_customers, first_come_path, mmc
from workbench.queueing.statistics import Interval, batch_means, coverage, replication_seeds, student_interval

REPLICATIONS, BATCHES, NAIVE = "replications", "batch means", "as if waits were independent"
METHODS = (REPLICATIONS, BATCHES, NAIVE)
LOADS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
SHOWN = 60


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["coverage"].filter(pl.col("load") == parameters["load"])
    parts = [
        f"{row['share']:.0%} by {row['method']}" if row["method"] != NAIVE else f"{row['share']:.0%} {row['method']}"
        for row in table.to_dicts()
    ]
    low, high = table["low"][0], table["high"][0]
    return (
        f"At load {parameters['load']:g} intervals that promise 95 % hold the true mean wait in {', '.join(parts)} of "
        f"{table['experiments'][0]} experiments; an honest method shows {low:.0%} to {high:.0%} in 99 cases of 100."
    )


@experiment(
    "theory/intervals",
    title="Do intervals keep their word?",
    question="How often does a 95 % interval of a simulated wait hold the true one, and what makes it lie?",
    backends=("compiled",),
    seconds={"compiled": 6.0},
    draw="waiting.intervals",
    panels=("coverage", "intervals"),
    say=_say,
)
def intervals(
    context: Context,
    *,
    load: Annotated[float, Par("Load", low=0.1, high=0.98, step=0.01)] = 0.8,
    servers: Annotated[int, Par("Servers (M/M/c)", low=1, high=16)] = 1,
    customers: Annotated[int, Par("Jobs of an experiment", low=2_000, high=200_000, step=1_000)] = 40_000,
    replications: Annotated[int, Par("Replications of an experiment", low=2, high=50)] = 10,
    batches: Annotated[int, Par("Batches of an experiment", low=2, high=200)] = 30,
    warm_up: Annotated[float, Par("Share left out at the start", low=0, high=0.9, step=0.05)] = 0.1,
    experiments: Annotated[int, Par("Experiments", low=50, high=2_000, step=50, free=True)] = 400,
    method: Annotated[str, Par("Intervals shown one by one", choices=METHODS, free=True)] = REPLICATIONS,
) -> dict[str, pl.DataFrame]:
    """Share of intervals that hold the exact mean wait of M/M/c, against the load, with the band of an honest method.

    Every experiment has the same number of jobs: one long run for batch means and for the naive way, cut into shorter
    runs that each start empty for replications.
    """
    count = experiments if context.mode == "full" else min(experiments, 100)
    rows, shown = [], []
    for at in sorted({*(LOADS if context.mode == "full" else LOADS[1::2]), load}):
        context.tell(f"load {at:g}")
        exact = mmc(at * servers, 1.0, servers).mean_wait_s
        found = _experiments(context, at * servers, servers, customers, replications, batches, warm_up, count)
        for name, intervals_ in found.items():
            kept = coverage(intervals_, exact)
            rows.append(
                {
                    "method": name,
                    "load": at,
                    "share": kept.share,
                    "low": kept.band[0],
                    "high": kept.band[1],
                    "too_low": kept.too_low,
                    "too_high": kept.too_high,
                    "half_width_s": float(np.mean([one.half_width for one in intervals_])),
                    "exact_s": exact,
                    "experiments": count,
                }
            )
        if at == load:
            shown = [
                {"experiment": place, "mean_s": one.mean, "low_s": one.low, "high_s": one.high, "exact_s": exact}
                for place, one in enumerate(found[method][:SHOWN], start=1)
            ]
    table = pl.DataFrame(rows)
    known = curve_rows(table, "method", "load", "share", "1")
    return {"coverage": table, "intervals": pl.DataFrame(shown), "headline": headline(known)}


def _experiments(
    context: Context,
    rate: float,
    servers: int,
    customers: int,
    replications: int,
    batches: int,
    warm_up: float,
    count: int,
) -> dict[str, list[Interval]]:
    found: dict[str, list[Interval]] = {name: [] for name in METHODS}
    gaps, service = Exponential(mean_s=1 / rate), Exponential(mean_s=1.0)
    each = max(2, customers // replications)
    for seed in replication_seeds(context.seed, count):
        context.check()
        waits = first_come_path(draw_customers(gaps, service, customers, seed), servers).wait_s
        waits = waits[int(warm_up * customers) :]
        found[BATCHES].append(batch_means(waits, min(batches, len(waits))).interval)
        found[NAIVE].append(student_interval(waits))
        means = []
        for child in replication_seeds(int(seed.generate_state(1)[0]), replications):
            waits = first_come_path(draw_customers(gaps, service, each, child), servers).wait_s
            means.append(float(waits[int(warm_up * each) :].mean()))
        found[REPLICATIONS].append(student_interval(means))
    return found
