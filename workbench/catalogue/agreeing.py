"""How far the backends of one run lie apart."""

import polars as pl

from workbench.catalogue.spec import Agree
from workbench.results import Agreement

DEPENDENT = {frozenset({"compiled", "simpy"})}
"""Pairs that share decisions and step times: their agreement is a consistency check, not evidence."""


def agreements(agrees: tuple[Agree, ...], tables: dict[str, pl.DataFrame]) -> tuple[Agreement, ...]:
    """One record for every declared quantity and pair of backends that both ran and share rows."""
    found = []
    for agree in agrees:
        table = tables.get(agree.table)
        if table is None:
            continue
        for (reference, other), allowed in _with_recorded(agree).items():
            if (difference := _largest(table, agree, reference, other)) is not None:
                rows, relative = difference
                found.append(
                    Agreement(
                        quantity=agree.quantity,
                        backends=(reference, other),
                        rows=rows,
                        difference=relative,
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


def _largest(table: pl.DataFrame, agree: Agree, reference: str, other: str) -> tuple[int, float] | None:
    keys = [*agree.on, *(name for name in ("replication",) if name in table.columns)]
    sides = [
        table.filter(pl.col("backend") == name).select(*keys, pl.col(agree.value).alias(name))
        for name in (reference, other)
    ]
    joined = sides[0].join(sides[1], on=keys, how="inner").drop_nulls()
    if not len(joined):
        return None
    scale = pl.when(pl.col(reference) == 0).then(1.0).otherwise(pl.col(reference).abs())
    relative = joined.select((pl.col(other) - pl.col(reference)) / scale).to_series()
    worst = relative[relative.abs().arg_max()]
    return len(joined), float(worst)
