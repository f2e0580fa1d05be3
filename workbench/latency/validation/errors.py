"""Relative errors by class, and whether a target was met."""

from collections.abc import Sequence

import polars as pl

FITTED_TARGET, ROOFLINE_TARGET = 0.10, 0.15

TOKEN_CLASSES = ((1, 16), (17, 128), (129, 512), (513, 1024), (1025, 1 << 20))


def size_class(values: pl.Expr, classes: Sequence[tuple[int, int]], unit: str) -> pl.Expr:
    """The class that a size falls into ("129-512 tokens"), in order of size; the last class is open above."""
    names = [f"{least}-{most} {unit}" for least, most in classes[:-1]] + [f"over {classes[-1][0] - 1} {unit}"]
    found = pl.lit(names[-1])
    for name, (_, most) in reversed(list(zip(names, classes[:-1], strict=False))):
        found = pl.when(values <= most).then(pl.lit(name)).otherwise(found)
    return found.cast(pl.Enum([*names, "all"]))


def errors_by_class(rows: pl.DataFrame, classes: Sequence[str], models: Sequence[str]) -> pl.DataFrame:
    """Errors of held-out rows within each class and over all.

    Parameters:
        rows: with `seconds`, `held_out`, the columns of `classes`, and predicted seconds named as in `models`.
        classes: columns to group by, coarse to fine; "all" in the finer ones stands for their sum.
        models: columns with predicted seconds ("fitted", "roofline").

    Returns:
        The class columns, rows, median_s, and for every model its median error, signed median and 90 % quantile.
    """
    held = rows.filter(pl.col("held_out"))
    parts = []
    for depth in range(len(classes) + 1):
        kept, rest = list(classes[:depth]), list(classes[depth:])
        statistics = [pl.len().alias("rows"), pl.col("seconds").median().alias("median_s")]
        for model in models:
            error = pl.col(model) / pl.col("seconds") - 1
            statistics += [
                error.abs().median().alias(f"{model}_error"),
                error.median().alias(f"{model}_signed"),
                error.abs().quantile(0.9).alias(f"{model}_p90"),
            ]
        part = held.group_by(kept).agg(statistics) if kept else held.select(statistics)
        kinds = {name: held.schema[name] for name in rest}
        parts.append(part.with_columns(*(pl.lit("all", kind).alias(name) for name, kind in kinds.items())))
    order = [*classes, *parts[0].drop(classes).columns]
    return pl.concat([part.select(order) for part in parts]).sort(classes).cast(dict.fromkeys(classes, pl.String))


def with_targets(table: pl.DataFrame) -> pl.DataFrame:
    """The same with `fitted_met` and `roofline_met`: whether the median error is within 10 % and 15 %."""
    return table.with_columns(
        fitted_met=pl.col("fitted_error") <= FITTED_TARGET, roofline_met=pl.col("roofline_error") <= ROOFLINE_TARGET
    )
