"""Verdicts: each published point, band or ordering beside our number.

The band comes from the published row itself, or from the tolerance that was committed with the experiment; nothing here
can be tuned to a result. A verdict that *differs* carries the run in which dropping the blamed assumption moves it.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import polars as pl

from workbench.catalogue.published import claim_of, text_of
from workbench.catalogue.spec import ALL, Assumption, Match, Ordering, Spec
from workbench.queueing.statistics import ends_over_runs
from workbench.results import Reading, Strength, Verdict, read_against

Rerun = Callable[[Mapping[str, Any]], dict[str, pl.DataFrame]]
Row = dict[str, Any]


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
    """All verdicts of a run: the published points in order, then orderings, then special judges."""
    ours = Ours(draft.tables)
    verdicts = [_point(draft, ours, row) for row in draft.published.iter_rows(named=True)]
    verdicts += [_ordering(draft, ours, ordering) for ordering in draft.spec.orderings]
    for special in draft.spec.judges:
        verdicts += special(draft)
    return tuple(verdicts)


def against_measurements(
    draft: Draft, claim: str, measured: str, ours: float | str, target: float, reading: Reading, why: str
) -> Verdict:
    """A verdict about an error against measured data, which should be at most `target`; its reading is given."""
    return Verdict(
        claim=claim,
        published=measured,
        ours=ours,
        tolerance=(0.0, target),
        strength="band",
        verdict=reading,
        reason=why,
        mode=draft.mode,
        seeds=draft.seeds,
    )


SHOWN = 3
"""At most, of the x at which a run has a number, where one is missing."""


class Ours:
    """Our headline numbers, looked up by series and x: one value a replication, of the first backend that gives it."""

    def __init__(self, tables: Mapping[str, pl.DataFrame]):
        self._found: dict[tuple[str, str | float], tuple[str, str, list[float]]] = {}
        table = tables.get("headline")
        for row in () if table is None else table.iter_rows(named=True):
            if row["value"] is None:
                continue
            key = (row["series"], place_of(row["x"]))
            backend, _, values = self._found.setdefault(key, (row["backend"], row["unit"], []))
            if backend == row["backend"]:
                values.append(row["value"])

    def __call__(self, series: str, x: str | None) -> tuple[list[float], str]:
        """The values and their unit; an empty list where there is no such number."""
        _, unit, values = self._found.get((series, place_of(x)), ("", "", []))
        return values, unit

    def lacks(self, series: str) -> str:
        """Why a published point has no number of ours beside it, where nobody gave a better reason."""
        places = [f"{x:g}" if isinstance(x, float) else x for name, x in self._found if name == series]
        if not (places := [place for place in places if place]):
            return "this run holds no such number"
        more = ", ..." if len(places) > SHOWN else ""
        return f"this run holds the number for {', '.join(places[:SHOWN])}{more} instead; other parameters may give it"

    def instead_of(self, series: str) -> str:
        """What a reader may name instead of a point that is not there: another x of its series, else another series."""
        if places := [x for name, x in self._found if name == series]:
            texts = ["an empty x" if x == "" else f"{x:g}" if isinstance(x, float) else repr(x) for x in places]
            if len(texts) > 2 * SHOWN:
                texts = [*texts[:SHOWN], "…", *texts[-SHOWN:]]
            return f"this run has the series, but not at that x; it has {', '.join(texts)}"
        names = dict.fromkeys(repr(name) for name, _ in self._found)
        return f"this run has no series of that name; it has {', '.join(names) or 'none'}"


def place_of(x: str | None) -> str | float:
    """The x of a point; two spellings of a number are the same one."""
    try:
        return float(x or "")
    except ValueError:
        return x or ""


def _point(draft: Draft, ours: Ours, row: Row) -> Verdict:
    match = _match_for(draft.spec, row["series"])
    band = _band(row, match.tolerance)
    values, unit = ours(row["series"], row["x"])
    if not values:
        absent = draft.reason or match.incomparable.get(row["x"], "")
        why = ours.instead_of(row["series"]) if row["kind"] == "user" else absent
        return _verdict(draft, row, "", None, band, "not comparable", why or ours.lacks(row["series"]))
    if row["unit"] and row["unit"] != unit:
        why = f"it is given in {row['unit']!r}, ours in {unit!r}"
        return _verdict(draft, row, "", None, band, "not comparable", why)
    mean, interval = sum(values) / len(values), ends_over_runs(values)
    judged: Reading = read_against(mean, interval, *band)
    reading, why = judged, _why(mean, band, unit)
    if row["kind"] == "user":
        pass
    elif not draft.comparable:
        reading, why = "not comparable", draft.reason
    elif row["x"] in match.incomparable:
        reading, why = "not comparable", match.incomparable[row["x"]]
    elif row["kind"] == "computed":
        agrees = "agrees" if judged == "reproduced" else "does not agree"
        reading = "computed"
        why = f"laid beside a calculation, not a measurement; it {agrees} ({_band_text(band, unit)})"
    elif match.fitted == ALL or row["x"] in match.fitted:
        reading, why = "fitted", f"parameters were calibrated on this value; {why}"
    if match.note and reading in ("reproduced", "differs", "undecided"):
        why += f"; {match.note}"
    if reading == "differs":
        why += _blame(draft, match.assumptions, lambda moved: moved(row["series"], row["x"])[0], mean, unit, band)
    return _verdict(draft, row, mean, interval, band, reading, why)


def _match_for(spec: Spec, series: str) -> Match:
    named = [match for match in spec.matches if series in match.series]
    general = [match for match in spec.matches if not match.series]
    return (named or general or [Match()])[0]


def _band(row: Row, tolerance: float) -> tuple[float, float]:
    low, high, value = row["low"], row["high"], row["value"]
    if low is None and high is None:
        half = abs(value) * tolerance
        return value - half, value + half
    return (-math.inf if low is None else low), (math.inf if high is None else high)


def _band_text(band: tuple[float, float], unit: str) -> str:
    unit = _after(unit)
    if band[0] == band[1]:
        return f"{band[0]:.6g}{unit} exactly"
    if math.isinf(band[1]):
        return f"at least {band[0]:.4g}{unit}"
    if math.isinf(band[0]):
        return f"at most {band[1]:.4g}{unit}"
    return f"{band[0]:.4g} to {band[1]:.4g}{unit}"


def _after(unit: str | None) -> str:
    return "" if unit in (None, "", "1") else f" {unit}"


def _why(mean: float, band: tuple[float, float], unit: str) -> str:
    side = "within" if band[0] <= mean <= band[1] else ("below" if mean < band[0] else "above")
    if band[0] == band[1]:
        return f"ours is {'' if side == 'within' else 'not '}{_band_text(band, unit)}"
    return f"ours is {side} {_band_text(band, unit)}"


def _blame(
    draft: Draft,
    assumptions: tuple[Assumption, ...],
    pick: Callable[[Ours], list[float]],
    mean: float,
    unit: str,
    band: tuple[float, float],
) -> str:
    parts = []
    for assumption in assumptions:
        if moved := pick(Ours(draft.rerun(assumption.change))):
            change = ", ".join(f"{name} = {value}" for name, value in assumption.change.items())
            to = sum(moved) / len(moved)
            text = (
                f". Assumed here: {assumption.text}; with {change} ours moves from {mean:.4g} to {to:.4g}{_after(unit)}"
            )
            parts.append(f"{text}, {_how_far(mean, to, band)}")
    return "".join(parts) or ". No assumption named here explains it"


def _how_far(mean: float, to: float, band: tuple[float, float]) -> str:
    """How much of the gap to the band a blamed run closes."""
    if band[0] <= to <= band[1]:
        return "inside the band"
    edge = band[0] if mean < band[0] else band[1]
    closed = (to - mean) / (edge - mean)
    if closed > 1:
        return "beyond the band on the other side"
    return f"which closes {closed:.0%} of the gap" if closed > 0 else "away from the band"


def _ordering(draft: Draft, ours: Ours, ordering: Ordering) -> Verdict:
    def pick(numbers: Ours) -> list[list[float]]:
        return [numbers(series, ordering.x)[0] for series in ordering.order]

    columns = pick(ours)
    common = {"claim": ordering.claim, "published": " < ".join(ordering.order), "strength": "ordering"}
    common |= {"mode": draft.mode, "seeds": draft.seeds, "trace": draft.trace}
    if not all(columns):
        missing = ordering.order[[bool(column) for column in columns].index(False)]
        return Verdict(ours="", verdict="not comparable", reason=f"this run holds no {missing}", **common)
    unit = ours(ordering.order[0], ordering.x)[1]
    held = [all(a < b for a, b in itertools.pairwise(run)) for run in zip(*columns, strict=True)]
    values = f"{_values(columns)}{_after(unit)}"
    if not draft.comparable:
        return Verdict(ours=values, verdict="not comparable", reason=draft.reason, **common)
    reading: Reading = "reproduced" if all(held) else ("undecided" if any(held) else "differs")
    why = f"the order holds in {sum(held)} of {len(held)} runs"
    if reading == "differs":
        for assumption in ordering.assumptions:
            change = ", ".join(f"{name} = {value}" for name, value in assumption.change.items())
            columns = pick(Ours(draft.rerun(assumption.change)))
            means = [sum(column) / len(column) for column in columns if column]
            rising = all(a < b for a, b in itertools.pairwise(means))
            order = "in the published order" if rising else "still in another order"
            moved = f"{_values(columns)}{_after(unit)}"
            why += f". Assumed here: {assumption.text}; with {change} the values are {moved}, {order}"
    return Verdict(ours=values, verdict=reading, reason=why, **common)


def _values(columns: list[list[float]]) -> str:
    return ", ".join(f"{sum(column) / len(column):.4g}" if column else "none" for column in columns)


def _verdict(
    draft: Draft,
    row: Row,
    value: float | str,
    interval: tuple[float, float] | None,
    band: tuple[float, float],
    reading: Reading,
    why: str,
) -> Verdict:
    return Verdict(
        claim=claim_of(row["series"], row["x"]),
        published=text_of(row) + _after(row["unit"]),
        ours=value,
        interval=interval,
        tolerance=band,
        strength=_strength(row, band),
        verdict=reading,
        reason=why,
        mode=draft.mode,
        seeds=draft.seeds,
        trace=draft.trace,
    )


def _strength(row: Row, band: tuple[float, float]) -> Strength:
    if not row["value"] or math.isinf(band[0]) or math.isinf(band[1]):
        return "band"
    relative = max(band[1] - row["value"], row["value"] - band[0]) / abs(row["value"])
    for limit, name in ((1e-9, "exact"), (0.01, "within 1 %"), (0.05, "within 5 %"), (0.1, "within 10 %")):
        if relative <= limit * (1 + 1e-6):
            return name
    return "band" if row["low"] is not None else "within 30 %"
