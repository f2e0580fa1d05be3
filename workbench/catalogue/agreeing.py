"""How far the backends of one run lie apart."""

import math

import polars as pl

from workbench.catalogue.spec import Agree
from workbench.results import Agreement

DEPENDENT = {frozenset({"compiled", "simpy"})}
"""Pairs that share decisions and step times: their agreement is a consistency check, not evidence."""


def agreements(agrees: tuple[Agree, ...], tables: dict[str, pl.DataFrame]) -> tuple[Agreement, ...]:
    """One record for every declared quantity and pair of backends that both ran."""
    found = []
    for agree in agrees:
        table = tables.get(agree.table)
        if table is None:
            continue
        for (reference, other), allowed in _with_recorded(agree).items():
            if (compared := _compared(table, agree, reference, other, allowed)) is not None:
                rows, of, difference = compared
                found.append(
                    Agreement(
                        quantity=agree.quantity,
                        backends=(reference, other),
                        rows=rows,
                        of=of,
                        difference=difference,
                        allowed=allowed,
                        independent=frozenset({reference, other}) not in DEPENDENT,
                    )
                )
    return tuple(found)


def _with_recorded(agree: Agree) -> dict[tuple[str, str], tuple[float, float]]:
    """The declared pairs, and the same for a recorded run that stands in where torch is missing."""
    recorded = {
        tuple("recorded" if name == "torch" else name for name in pair): allowed
        for pair, allowed in agree.pairs.items()
        if "torch" in pair
    }
    return {**agree.pairs, **recorded}


def _compared(
    table: pl.DataFrame, agree: Agree, reference: str, other: str, allowed: tuple[float, float]
) -> tuple[int, int, float] | None:
    """Rows that both gave, rows of the reference, and the difference that decides; None where one did not run."""
    keys = [*agree.on, *(name for name in ("replication",) if name in table.columns)]
    sides = [
        table.filter(pl.col("backend") == name).select(*keys, pl.col(agree.value).alias("value"))
        for name in (reference, other)
    ]
    if not all(len(side) for side in sides):
        return None
    joined = sides[0].rename({"value": "a"}).join(sides[1].rename({"value": "b"}), on=keys, how="inner")
    # A recorded run was made in full mode; in quick mode it holds rows that no one asked for.
    if len(joined) < len(sides[1]) and not (other == "recorded" and len(joined) == len(sides[0])):
        return len(joined), len(sides[0]), math.nan  # the other answers for rows that the reference lacks
    differences = [_relative(a, b) for a, b in joined.select("a", "b").rows()]
    return len(joined), len(sides[0]), max(differences, key=lambda value: _size(value, allowed))


def _relative(a: float | None, b: float | None) -> float:
    """(b - a) / a; 0 for equal numbers or two missing ones, NaN where one is missing or not finite."""
    missing = [value is None or math.isnan(value) for value in (a, b)]
    if a == b or all(missing):
        return 0.0
    if any(missing) or math.isinf(a) or math.isinf(b):
        return math.nan
    return (b - a) / (abs(a) if a else 1.0)


def _size(difference: float, allowed: tuple[float, float]) -> tuple[float, float]:
    """How much a difference matters: first how far it lies outside the band, then how large it is."""
    if math.isnan(difference):
        return math.inf, 0.0
    return max(allowed[0] - difference, difference - allowed[1], 0.0), abs(difference)
