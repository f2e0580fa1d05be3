"""Verdicts: each published point, band or ordering beside our number.

The band comes from the published row itself, or from the tolerance that was committed with the experiment; nothing here
can be tuned to a result. A verdict that *differs* carries the run in which dropping the blamed assumption moves it.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import polars as pl

from workbench.catalogue.published import text_of
from workbench.catalogue.spec import Assumption, Match, Ordering, Spec
from workbench.results import Reading, Strength, Verdict, interval95, read_against

Rerun = Callable[[Mapping[str, Any]], dict[str, pl.DataFrame]]


class Draft(NamedTuple):
    """What is known of a run when it is judged.

    `rerun(change)` runs the same experiment with some parameters changed, on the backend that is judged.
    """

    spec: Spec
    parameters: Mapping[str, Any]
    tables: dict[str, pl.DataFrame]
    published: pl.DataFrame
    comparable: bool
    reason: str
    mode: str
    seeds: tuple[int, ...]
    trace: str
    rerun: Rerun


def judge(draft: Draft) -> tuple[Verdict, ...]:
    """All verdicts of a run, in the order of the published points, then orderings, then special judges."""
    verdicts = [_point(draft, row) for row in draft.published.iter_rows(named=True)]
    verdicts += [_ordering(draft, ordering) for ordering in draft.spec.orderings]
    for special in draft.spec.judges:
        verdicts += special(draft)
    return tuple(verdicts)


def _point(draft: Draft, row: dict[str, Any]) -> Verdict:
    match = _match_for(draft.spec, row["series"])
    if match is None:
        claim = f"{row['series']} at {row['x']}"
        return _verdict(draft, claim, row, "", None, None, "not comparable", "the experiment shows no such quantity")
    claim = match.claim.format(series=row["series"], x=row["x"])
    if row["unit"] and row["unit"] != match.unit:
        why = f"it is given in {row['unit']!r}, ours in {match.unit!r}"
        return _verdict(draft, claim, row, "", None, None, "not comparable", why)
    low, high = _band(row, match.tolerance)
    values = _ours(draft.tables, match, row)
    if not values:
        why = "this run holds no such point"
        return _verdict(draft, claim, row, "", None, (low, high), "not comparable", why)
    ours, interval = sum(values) / len(values), interval95(values)
    if row["kind"] == "computed":
        reading: Reading = "computed"
        why = "laid beside a calculation, not a measurement; " + (
            "it agrees" if low <= ours <= high else "it does not agree"
        )
    elif row["series"] in match.fitted:
        reading, why = "fitted", "parameters were calibrated on this value"
    elif not draft.comparable:
        reading, why = "not comparable", draft.reason
    else:
        reading, why = read_against(ours, interval, low, high), _why(ours, low, high, match.unit)
    if reading == "differs":
        why = (
            _blame(draft, match.assumptions, row["series"], ours, match.unit, lambda tables: _ours(tables, match, row))
            or why
        )
    return _verdict(draft, claim, row, ours, interval, (low, high), reading, why)


def _match_for(spec: Spec, series: str) -> Match | None:
    for match in spec.matches:
        if series in match.only:
            return match
    return next((match for match in spec.matches if not match.only), None)


def _band(row: dict[str, Any], tolerance: float) -> tuple[float, float]:
    if row["low"] is not None and row["high"] is not None:
        return row["low"], row["high"]
    half = abs(row["value"]) * tolerance
    return row["value"] - half, row["value"] + half


def _ours(tables: dict[str, pl.DataFrame], match: Match, row: dict[str, Any]) -> list[float]:
    table = tables[match.table]
    picked = table.filter(pl.col(match.series) == row["series"]) if match.series in table.columns else table
    for name, wanted in match.where.items():
        picked = picked.filter(pl.col(name) == wanted)
    if match.x in table.columns and row["x"] not in (None, ""):
        picked = picked.filter(_same(pl.col(match.x), table.schema[match.x], row["x"]))
    if "backend" in picked.columns and len(picked):
        picked = picked.filter(pl.col("backend") == picked["backend"][0])
    if "replication" in picked.columns:
        return (
            picked.group_by("replication", maintain_order=True).agg(pl.col(match.value).mean())[match.value].to_list()
        )
    return picked[match.value].drop_nulls().to_list()[:1]


def _same(column: pl.Expr, kind: pl.DataType, text: str) -> pl.Expr:
    if not kind.is_numeric():
        return column == text
    try:
        wanted = float(text)
    except ValueError:
        return pl.lit(False)
    return (column.cast(pl.Float64) - wanted).abs() <= 1e-9 * max(1.0, abs(wanted))


def _why(ours: float, low: float, high: float, unit: str) -> str:
    side = "within" if low <= ours <= high else ("below" if ours < low else "above")
    return f"ours is {side} {low:.4g} to {high:.4g} {unit}"


def _blame(
    draft: Draft,
    assumptions: tuple[Assumption, ...],
    series: str,
    ours: float,
    unit: str,
    pick: Callable[[dict[str, pl.DataFrame]], list[float]],
) -> str:
    parts = []
    for assumption in assumptions:
        if assumption.series and series not in assumption.series:
            continue
        moved = pick(draft.rerun(assumption.change))
        if moved:
            change = ", ".join(f"{name} = {value}" for name, value in assumption.change.items())
            mean = sum(moved) / len(moved)
            parts.append(
                f"assumed here: {assumption.text}; with {change} ours moves from {ours:.4g} to {mean:.4g} {unit}"
            )
    return ". ".join(parts)


def _ordering(draft: Draft, ordering: Ordering) -> Verdict:
    def pick(tables: dict[str, pl.DataFrame], series: str) -> list[float]:
        match = Match(ordering.table, ordering.value, ordering.unit, ordering.series, x="", where=ordering.where)
        return _ours(tables, match, {"series": series, "x": ""})

    columns = [pick(draft.tables, series) for series in ordering.order]
    published = " < ".join(ordering.order)
    if not all(columns):
        missing = ordering.order[[bool(column) for column in columns].index(False)]
        ours, reading, why = "", "not comparable", f"this run holds no {missing}"
    else:
        runs = list(zip(*columns, strict=False))
        held = [all(a < b for a, b in itertools.pairwise(run)) for run in runs]
        means = [sum(column) / len(column) for column in columns]
        ours = " < ".join(f"{mean:.4g}" for mean in means) if all(held) else ", ".join(f"{mean:.4g}" for mean in means)
        ours += f" {ordering.unit}"
        reading = "reproduced" if all(held) else ("differs" if not any(held) else "undecided")
        why = f"the order holds in {sum(held)} of {len(held)} runs"
        if reading == "differs":
            moved = []
            for assumption in ordering.assumptions:
                tables = draft.rerun(assumption.change)
                values = [pick(tables, series) for series in ordering.order]
                if all(values):
                    change = ", ".join(f"{name} = {value}" for name, value in assumption.change.items())
                    text = ", ".join(f"{sum(value) / len(value):.4g}" for value in values)
                    moved.append(
                        f"assumed here: {assumption.text}; with {change} the values are {text} {ordering.unit}"
                    )
            why = ". ".join(moved) or why
        if not draft.comparable:
            reading, why = "not comparable", draft.reason
    return Verdict(
        claim=ordering.claim,
        published=published,
        ours=ours,
        strength="ordering",
        verdict=reading,
        reason=why,
        mode=draft.mode,
        seeds=draft.seeds,
        trace=draft.trace,
    )


def _verdict(
    draft: Draft,
    claim: str,
    row: dict[str, Any],
    ours: float | str,
    interval: tuple[float, float] | None,
    band: tuple[float, float] | None,
    reading: Reading,
    why: str,
) -> Verdict:
    return Verdict(
        claim=claim,
        published=text_of(row) + ("" if row["unit"] in ("", "1") else f" {row['unit']}"),
        ours=ours,
        interval=interval,
        tolerance=band,
        strength=_strength(row, band),
        verdict=reading,
        reason=why,
        mode=draft.mode,
        seeds=draft.seeds,
        trace=draft.trace,
    )


def _strength(row: dict[str, Any], band: tuple[float, float] | None) -> Strength:
    if row["low"] is not None or not row["value"] or band is None:
        return "band"
    relative = (band[1] - band[0]) / 2 / abs(row["value"])
    for limit, name in ((1e-9, "exact"), (0.01, "within 1 %"), (0.05, "within 5 %"), (0.1, "within 10 %")):
        if relative <= limit * (1 + 1e-9):
            return name
    return "within 30 %"
