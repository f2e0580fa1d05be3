"""How many jobs to reserve cache for: every c by surrogate, lower bound and upper bound."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.chains.model.bounds import leaving, means_leaving
from workbench.chains.model.composing import allocate, needed_rate, placed, reserve
from workbench.chains.model.fleet import Fleet
from workbench.errors import InputError, UserError
from workbench.queueing.checking import MOST_SERVERS, positive
from workbench.records import shown, takes_records, whole

RULES = {"surrogate": "surrogate_s", "lower bound": "lower_s", "upper bound": "upper_s"}
"""What c can be chosen by, and the column that holds it."""

COLUMNS = {
    "reserved": pl.Int64, "groups": pl.Int64, "surrogate_s": pl.Float64, "chains": pl.Int64, "job_servers": pl.Int64,
    "rate_per_s": pl.Float64, "lower_s": pl.Float64, "upper_s": pl.Float64,
}  # fmt: skip

MOST_RESERVED = 20_000
"""Values of c that are still tried one by one."""


class Tuning(NamedTuple):
    """Every c that hosts the model, and the best ones.

    Attributes:
        table: one row for each c: `reserved, groups` (K(c), null where all servers do not reach the rate),
            `surrogate_s` (c K(c)/λ), `chains, job_servers, rate_per_s, lower_s, upper_s` (null where λ is too much).
        best: rule -> the smallest c of the least value, None where no c has one.
    """

    table: pl.DataFrame
    best: dict[str, int | None]


@takes_records
def tune(
    fleet: Fleet,
    arrival_rate_per_s: float,
    most_load: float = 0.7,
    reserved: Iterable[int] | None = None,
    *,
    every_server: bool = True,
) -> Tuning:
    """Which c gives the shortest response (arXiv 2604.14993 §3.1.3 and §3.2.3)?

    Parameters:
        fleet: the servers.
        arrival_rate_per_s: λ.
        most_load: ρ, load at which the surrogate's rule counts chains as enough.
        reserved: values of c to try; 1 to the largest by default.
        every_server: whether chains are formed of all servers; else placing stops once λ/ρ is reached.

    Raises:
        UserError: no c hosts the model, or more values of c or jobs at once than can be computed.
    """
    return _tuned(fleet, [arrival_rate_per_s], most_load, reserved, every_server)[0]


@takes_records
def tune_each(fleet: Fleet, arrival_rates_per_s: Iterable[float], most_load: float = 0.7) -> list[Tuning]:
    """`tune` at several rates; chains of all servers are formed once for each c. Errors: as `tune`."""
    return _tuned(fleet, arrival_rates_per_s, most_load, None, True)


class _Formed(NamedTuple):
    """Chains for one c: how many, their slots and rate, and rates of leaving as `bounds.leaving` gives them."""

    chains: int
    job_servers: int
    rate_per_s: float
    fastest: np.ndarray
    slowest: np.ndarray


def _tuned(fleet, arrival_rates_per_s, most_load, reserved, every_server: bool) -> list[Tuning]:
    """As `tune`, one for each rate; what does not depend on the rate is computed once for each c."""
    rates = [(positive(r, "arrival_rate_per_s"), needed_rate(r, most_load)) for r in arrival_rates_per_s]
    if reserved is None and fleet.most_reserved > MOST_RESERVED:
        raise UserError(
            f"Up to {fleet.most_reserved:,} jobs fit beside a block, more than can be tried one by one; "
            "give the values of `reserved` to try."
        )
    rows: list[list[tuple]] = [[] for _ in rates]
    beyond = np.inf
    for c in range(1, fleet.most_reserved + 1) if reserved is None else to_try(reserved):
        if c >= beyond:
            continue
        blocks, one = reserve(fleet, c), None
        if blocks.sum() < fleet.layers:
            beyond = c  # more reserved jobs leave room for no more blocks
            continue
        for (rate, target), found in zip(rates, rows, strict=True):
            counted = placed(fleet, blocks, c, target)
            if one is None or not every_server:
                one = _form(fleet, blocks, c, np.inf if every_server else target)
            lower = upper = None
            if rate < one.rate_per_s:
                lower, upper = (inside / rate for inside in means_leaving(rate, one.fastest, one.slowest))
            groups = counted.groups if counted.enough else None
            surrogate = None if groups is None else c * groups / rate
            found.append((c, groups, surrogate, one.chains, one.job_servers, one.rate_per_s, lower, upper))
    return [_told(fleet, found) for found in rows]


def _form(fleet: Fleet, blocks: np.ndarray, c: int, needed_per_s: float) -> _Formed:
    made = allocate(fleet, placed(fleet, blocks, c, needed_per_s), c)
    if (jobs := made.job_servers) > MOST_SERVERS:
        raise UserError(
            f"With c = {c} the chains hold {jobs:,} jobs at once, more than the bounds are computed "
            f"for ({MOST_SERVERS:,}); take less memory, or a larger cache of a job."
        )
    return _Formed(len(made.chains), jobs, made.rate_per_s, *leaving(made.rates_per_s, made.capacities))


def _told(fleet: Fleet, rows: list[tuple]) -> Tuning:
    if not rows:
        raise UserError(
            f"These {fleet.servers} servers cannot host all {fleet.layers} blocks beside the cache of one job; "
            "add memory or servers."
        )
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    best = {rule: _least(columns[name], columns["reserved"]) for rule, name in RULES.items()}
    return Tuning(pl.DataFrame(columns, schema=COLUMNS), best)


def to_try(reserved: Iterable[int]) -> list[int]:
    """Values of c that are to be tried, at least one, or an `InputError`."""
    if isinstance(reserved, str) or not isinstance(reserved, Iterable):
        raise InputError(f"is {shown(reserved)}", "give a list of values of c to try", field="reserved")
    values = [whole(c, "reserved", 1) for c in reserved]
    if not values:
        raise InputError("is empty", "give a value of c to try", field="reserved")
    return values


def _least(values: Iterable[float | None], reserved: Iterable[int]) -> int | None:
    known = [(value, c) for value, c in zip(values, reserved, strict=True) if value is not None]
    return min(known)[1] if known else None
