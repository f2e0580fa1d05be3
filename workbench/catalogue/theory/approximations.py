"""Formulas that know means and variances only: how far they miss exact answers and simulated ones."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.errors import InputError
from workbench.queueing import (
    APPROXIMATIONS,
    Distribution,
    Gamma,
    Hyperexponential,
    Lognormal,
    Method,
    draw_customers,
    first_come_path,
    ggc,
    gimc,
    mdc,
)
from workbench.queueing.statistics import batch_means

METHODS = get_args(Method)
LOADS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
GAMMA, CONSTANT = "gamma arrivals, exponential service (GI/M/c)", "Poisson arrivals, constant service (M/D/c)"
FAMILIES = ("gamma", "lognormal", "hyperexponential")
WARM_UP = 0.1


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    load, scv = parameters["load"], parameters["arrival_scv"]
    parts = []
    if (errors := tables.get("errors")) is not None:
        here = errors.filter((pl.col("load") == load) & (pl.col("queue") == GAMMA))
        missed = dict(here.select("method", "relative_error").rows())  # no replication differs
        named = ", ".join(f"{method} {error:+.0%}" for method, error in missed.items())
        parts.append(f"At load {load:g} with gamma arrivals of squared CV {scv:g} the formulas miss by {named}")
    if (paths := tables.get("families")) is not None:
        here = paths.filter(pl.col("load") == load).group_by("family", maintain_order=True)
        here = here.agg(pl.col("wait_s").mean()).sort("wait_s")
        low, high = here.row(0, named=True), here.row(-1, named=True)
        parts.append(
            f"lines of the same two moments wait from {low['wait_s']:.3g} s ({low['family']}) to "
            f"{high['wait_s']:.3g} s ({high['family']})"
        )
    return "; ".join(parts) + "."


@experiment(
    "theory/approximations",
    title="Where two moments are not enough",
    question="How far off are Allen-Cunneen, Kimura and their kin, and can two moments ever be enough?",
    backends=("analytic", "compiled"),
    seconds={"analytic": 0.03, "compiled": 1.5},
    draw="waiting.approximations",
    panels=("errors", "families"),
    say=_say,
    stochastic=True,
)
def approximations(
    context: Context,
    *,
    servers: Annotated[int, Par("Servers", low=1, high=64)] = 4,
    arrival_scv: Annotated[float, Par("Squared CV of the gaps", low=0.1, high=16, step=0.1)] = 4.0,
    service_scv: Annotated[float, Par("Simulated lines: squared CV of the service", low=0.1, high=16, step=0.1)] = 4.0,
    load: Annotated[float, Par("Load", low=0.3, high=0.95, step=0.05)] = 0.8,
    methods: Annotated[tuple[str, ...], Par("Formulas", choices=METHODS)] = METHODS,
    customers: Annotated[int, Par("Jobs on a path", low=50_000, high=4_000_000, step=50_000, free=True)] = 1_000_000,
) -> dict[str, pl.DataFrame]:
    """Relative error of each formula against two exactly solvable lines; simulated waits of three families.

    A service takes 1 s on average. Gaps and services of a family have the two squared CVs that are asked for; a formula
    of two moments gives all three the same answer. `hyperexponential` needs squared CVs of 1 or more.
    """
    if context.backend == "analytic":
        return _formulas(context, servers, arrival_scv, service_scv, load, methods)
    rows = []
    for family in FAMILIES:
        if family == "hyperexponential" and min(arrival_scv, service_scv) < 1:
            context.cite("hyperexponential", "left out", "", "chosen", "it is burstier than an exponential")
            continue
        for at in _loads(load, 0.5, 0.7, 0.9):
            count = customers if context.mode == "full" else customers // 10
            context.tell(f"{family} at load {at:g}")
            gaps = _family(family, 1 / (at * servers), arrival_scv)
            drawn = draw_customers(gaps, _family(family, 1.0, service_scv), count, context.seed)
            found = batch_means(first_come_path(drawn, servers).wait_s[int(WARM_UP * count) :]).interval
            rows.append({"family": family, "load": at, "wait_s": found.mean, "low_s": found.low, "high_s": found.high})
    table = pl.DataFrame(rows)
    return {"families": table, "headline": headline(curve_rows(table, "family", "load", "wait_s", "s"))}


def _loads(load: float, *others: float) -> list[float]:
    return sorted({*others, load})


def _family(family: str, mean_s: float, scv: float) -> Distribution:
    kinds = {"gamma": Gamma, "lognormal": Lognormal, "hyperexponential": Hyperexponential}
    return kinds[family](mean_s=mean_s, scv=scv)


def _formulas(
    context: Context, servers: int, arrival_scv: float, service_scv: float, load: float, methods: tuple[str, ...]
) -> dict[str, pl.DataFrame]:
    errors, waits = [], []
    for method in methods:
        context.cite(method, "approximation", "", "computed", APPROXIMATIONS[method].source)
        for at in _loads(load, *LOADS):
            rate = at * servers
            exact = {
                GAMMA: (gimc(rate, arrival_scv, 1.0, servers).mean_wait_s, arrival_scv, 1.0),
                CONSTANT: (mdc(rate, 1.0, servers).mean_wait_s, 1.0, 0.0),
            }
            for queue, (wait_s, gaps, service) in exact.items():
                if (about := _about(rate, gaps, service, servers, method)) is not None:
                    errors.append({"method": method, "queue": queue, "load": at, "exact_s": wait_s, "about_s": about})
            if (about := _about(rate, arrival_scv, service_scv, servers, method)) is not None:
                waits.append({"method": method, "load": at, "wait_s": about})
    table = pl.DataFrame(errors, schema=_ERRORS).with_columns(relative_error=pl.col("about_s") / pl.col("exact_s") - 1)
    formulas = pl.DataFrame(waits, schema={"method": pl.String, "load": pl.Float64, "wait_s": pl.Float64})
    known = [(f"{method} on {queue}", at, error, "1") for method, queue, at, error in table.select(
        "method", "queue", "load", "relative_error").iter_rows()]  # fmt: skip
    return {"errors": table, "formulas": formulas, "headline": headline(known)}


_ERRORS = {
    "method": pl.String,
    "queue": pl.String,
    "load": pl.Float64,
    "exact_s": pl.Float64,
    "about_s": pl.Float64,
}


def _about(rate: float, arrival_scv: float, service_scv: float, servers: int, method: str) -> float | None:
    """What a formula says, or None where it is not made for such a line."""
    try:
        return ggc(rate, arrival_scv, 1.0, service_scv, servers, method).mean_wait_s
    except InputError:
        return None
