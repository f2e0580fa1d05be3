"""How long a job waits: formula, compiled sample path and SimPy on one axis."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.catalogue.theory.lines import LINES, Line, Setting, customers_of
from workbench.queueing.statistics import batch_means

LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FINE = tuple(round(0.02 * k, 2) for k in range(1, 49))
WARM_UP = 0.1
SHARP = 0.05
"""Half width over mean up to which a path says enough about a formula to be held against it, three half widths wide."""
SIMULATED = {"full": 20_000, "quick": 4_000}


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table, load = tables["response"], parameters["load"]
    at = {row["backend"]: row for row in table.filter(pl.col("load") == load).sort("customers").to_dicts()}
    start = f"{parameters['queue']} at load {load:g}: a job that takes 1 s alone"
    if "analytic" not in at:
        row = next(iter(at.values()))
        return f"{start} leaves after {row['response_s']:.3g} s on average ({row['low_s']:.3g} to {row['high_s']:.3g})."
    exact = {row["load"]: row["response_s"] for row in table.filter(pl.col("backend") == "analytic").to_dicts()}
    paths = table.filter(pl.col("backend") != "analytic")
    paths = paths.filter((pl.col("backend") == paths["backend"].first()) if len(paths) else pl.lit(False))
    paths = paths.filter(pl.col("customers") == pl.col("customers").max())
    text = f"{start} leaves after {exact[load]:.3g} s on average"
    if not len(paths):
        return f"{text}."
    held = sum(row["low_s"] <= exact[row["load"]] <= row["high_s"] for row in paths.to_dicts())
    return f"{text}; the formula lies in the 95 % interval of {held} of {len(paths)} paths."


@experiment(
    "theory/queues",
    title="How long does a job wait?",
    question="How does the time in the system grow with the load, and do formula, compiled path and SimPy agree?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.02, "compiled": 0.5, "simpy": 6.0},
    draw="waiting.queues",
    say=_say,
    stochastic=True,
    agrees=(
        Agree(
            "mean time in the system (where the interval of the path is within 5 %)",
            "sharp",
            ("load",),
            "response_s",
            {("analytic", "compiled"): (-0.15, 0.15)},
        ),
        Agree(
            "mean time in the system of the same jobs",
            "twins",
            ("load",),
            "response_s",
            {("compiled", "simpy"): (-1e-9, 1e-9)},
        ),
    ),
)
def queues(
    context: Context,
    *,
    queue: Annotated[str, Par("Line", choices=tuple(LINES))] = "M/M/c",
    load: Annotated[float, Par("Load marked in the figure", low=0.02, high=0.96, step=0.02)] = 0.8,
    servers: Annotated[int, Par("Servers (queues of a rotation, places of a batch)", low=1, high=16)] = 3,
    arrival_scv: Annotated[
        float, Par("Gamma arrivals: squared CV of the gaps", low=0, high=16, step=0.25, source="1 would be Poisson")
    ] = 4.0,
    service_scv: Annotated[
        float, Par("Lognormal service: squared CV", low=0, high=8, step=0.25, source="1 is that of an exponential")
    ] = 2.0,
    speed_ratio: Annotated[float, Par("Unequal servers: fastest over slowest", low=1, high=10, step=0.5)] = 4.0,
    switch_s: Annotated[float, Par("Rotation: walk to the next queue", "s", low=0.01, high=5, step=0.01)] = 0.1,
    customers: Annotated[
        int, Par("Jobs on a compiled path", low=10_000, high=4_000_000, step=10_000, free=True)
    ] = 400_000,
) -> dict[str, pl.DataFrame]:
    """Mean time in the system against the load; a job takes 1 s alone on a server of mean speed.

    Paths start empty; the first tenth is left out and the interval is that of 30 batch means. All loads, and both kinds
    of path, use the same random numbers.
    """
    line = LINES[queue]
    context.cite(f"{queue}: formula", "exact", "", "computed", line.source)
    setting = Setting(load, servers, arrival_scv, service_scv, speed_ratio, switch_s)
    if context.backend == "analytic":
        rows = [_row(at, _formula(line, setting._replace(load=at)), None, None, 0) for at in sorted({*FINE, load})]
        table = pl.DataFrame(rows, schema=_COLUMNS)
        return {"response": table, "sharp": table, "headline": headline(_named(table, queue))}
    loads = sorted({*(LOADS if context.mode == "full" else LOADS[1::2]), load})
    few = min(customers, SIMULATED[context.mode])
    twins = pl.DataFrame([_path(context, line, setting._replace(load=at), few) for at in loads], schema=_COLUMNS)
    table = twins
    if context.backend == "compiled":
        rows = [_path(context, line, setting._replace(load=at), customers) for at in loads]
        table = pl.DataFrame(rows, schema=_COLUMNS)
    sharp = table.filter((pl.col("high_s") - pl.col("low_s")) / 2 <= SHARP * pl.col("response_s"))
    return {"response": table, "sharp": sharp, "twins": twins, "headline": headline(_named(table, queue))}


_COLUMNS = {
    "load": pl.Float64,
    "response_s": pl.Float64,
    "low_s": pl.Float64,
    "high_s": pl.Float64,
    "customers": pl.Int64,
}


def _row(load: float, response_s: float, low_s: float | None, high_s: float | None, customers: int) -> dict[str, Any]:
    return {"load": load, "response_s": response_s, "low_s": low_s, "high_s": high_s, "customers": customers}


def _formula(line: Line, setting: Setting) -> float:
    return line.response_s(setting, setting.load * line.capacity(setting))


def _path(context: Context, line: Line, setting: Setting, customers: int) -> dict[str, Any]:
    context.tell(f"load {setting.load:g}, {customers:,} jobs")
    drawn = customers_of(line, setting, customers, context.seed)
    run = line.compiled if context.backend == "compiled" else line.simulated
    response = run(setting, drawn, context.random("queue")).response_s
    found = batch_means(response[int(WARM_UP * customers) :]).interval
    return _row(setting.load, found.mean, found.low, found.high, customers)


def _named(table: pl.DataFrame, queue: str) -> list[tuple[str, object, float, str]]:
    return curve_rows(table.with_columns(queue=pl.lit(queue)), "queue", "load", "response_s", "s")
