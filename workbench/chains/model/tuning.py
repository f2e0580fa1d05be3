"""How many jobs to reserve cache for: every c by surrogate, lower bound and upper bound."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.chains.model.bounds import both_means
from workbench.chains.model.composing import Composition, compose, needed_rate, place
from workbench.chains.model.fleet import Fleet
from workbench.errors import InputError, UserError
from workbench.queueing.checking import MOST_SERVERS, positive
from workbench.records import shown, takes_records, whole

RULES = {"surrogate": "surrogate_s", "lower bound": "lower_s", "upper bound": "upper_s"}
"""What c can be chosen by, and the column that holds it."""

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
    return _tuned(fleet, arrival_rate_per_s, most_load, reserved, every_server, {})


@takes_records
def tune_each(fleet: Fleet, arrival_rates_per_s: Iterable[float], most_load: float = 0.7) -> list[Tuning]:
    """`tune` at several rates; chains of all servers are formed once for each c. Errors: as `tune`."""
    formed: dict[int, _Formed] = {}
    return [_tuned(fleet, rate, most_load, None, True, formed) for rate in arrival_rates_per_s]


class _Formed(NamedTuple):
    """Chains for one c, and of each chain (float64[K], int64[K]) the rate of a slot and the slots."""

    made: Composition
    rates_per_s: np.ndarray
    slots: np.ndarray
    rate_per_s: float


def _tuned(fleet, arrival_rate_per_s, most_load, reserved, every_server: bool, formed: dict) -> Tuning:
    """As `tune`; chains of all servers are taken from `formed`, or entered there."""
    rate, target = positive(arrival_rate_per_s, "arrival_rate_per_s"), needed_rate(arrival_rate_per_s, most_load)
    if reserved is None:
        if fleet.most_reserved > MOST_RESERVED:
            raise UserError(
                f"Up to {fleet.most_reserved:,} jobs fit beside a block, more than can be tried one by one; "
                "give the values of `reserved` to try."
            )
        reserved = range(1, fleet.most_reserved + 1)
    rows, beyond = [], np.inf
    for c in to_try(reserved):
        if c >= beyond:
            continue
        counted = place(fleet, c, target)
        if not counted.groups:
            beyond = c  # more reserved jobs leave room for no more blocks
            continue
        if c not in formed or not every_server:
            formed[c] = _form(fleet, c, np.inf if every_server else target)
        one, lower, upper = formed[c], None, None
        if rate < one.rate_per_s:
            lower, upper = (inside / rate for inside in both_means(rate, one.rates_per_s, one.slots))
        groups = counted.groups if counted.enough else None
        surrogate = None if groups is None else c * groups / rate
        chains, jobs = len(one.made.chains), one.made.job_servers
        rows.append((c, groups, surrogate, chains, jobs, one.rate_per_s, lower, upper))
    names = ("reserved", "groups", "surrogate_s", "chains", "job_servers", "rate_per_s", "lower_s", "upper_s")
    kinds = (pl.Int64, pl.Int64, pl.Float64, pl.Int64, pl.Int64, pl.Float64, pl.Float64, pl.Float64)
    table = pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")
    if not len(table):
        raise UserError(
            f"These {fleet.servers} servers cannot host all {fleet.layers} blocks beside the cache of one job; "
            "add memory or servers."
        )
    return Tuning(table, {rule: _least(table, column) for rule, column in RULES.items()})


def _form(fleet: Fleet, c: int, needed_per_s: float) -> _Formed:
    made = compose(fleet, c, needed_per_s)
    slots = made.capacities
    if (jobs := int(slots.sum())) > MOST_SERVERS:
        raise UserError(
            f"With c = {c} the chains hold {jobs:,} jobs at once, more than the bounds are computed "
            f"for ({MOST_SERVERS:,}); take less memory, or a larger cache of a job."
        )
    return _Formed(made, made.rates_per_s, slots, made.rate_per_s)


def to_try(reserved: Iterable[int]) -> list[int]:
    """Values of c that are to be tried, at least one, or an `InputError`."""
    if isinstance(reserved, str) or not isinstance(reserved, Iterable):
        raise InputError(f"is {shown(reserved)}", "give a list of values of c to try", field="reserved")
    values = [whole(c, "reserved", 1) for c in reserved]
    if not values:
        raise InputError("is empty", "give a value of c to try", field="reserved")
    return values


def _least(table: pl.DataFrame, column: str) -> int | None:
    known = [(value, c) for value, c in zip(table[column], table["reserved"], strict=True) if value is not None]
    return min(known)[1] if known else None
