"""Everything that was compared, in two tables: verdicts with each backend's number, and agreements of backends."""

import math
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from workbench.catalogue.judging import place_of
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.spec import find
from workbench.errors import UserError
from workbench.paths import gallery_folder, write_atomic
from workbench.records import given_path
from workbench.results import READINGS, Verdict

VERDICTS, AGREEMENT = "verdicts.csv", "agreement.csv"

ANSWERS = {
    "analytic": "formula",
    "compiled": "compiled",
    "simpy": "simulation",
    "torch": "real",
    "recorded": "recorded",
}
"""Backend -> the column of its number."""

_FIRST = ("differs", "undecided", "reproduced")
"""Readings that come first in the table; within each the farthest off does."""

_VERDICT_COLUMNS = {
    "paper": pl.String, "experiment": pl.String, "claim": pl.String, "unit": pl.String,
    **dict.fromkeys(ANSWERS.values(), pl.Float64), "ours": pl.String, "published": pl.String,
    "verdict": pl.String, "strength": pl.String, "off": pl.Float64, "mode": pl.String, "reason": pl.String,
}  # fmt: skip
_AGREEMENT_COLUMNS = {
    "paper": pl.String, "experiment": pl.String, "quantity": pl.String, "first": pl.String, "second": pl.String,
    "rows": pl.Int64, "of": pl.Int64, "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "share": pl.Float64, "independent": pl.Boolean, "agrees": pl.Boolean,
}  # fmt: skip


def verdicts_of(outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """One row a verdict, worst first.

    Returns:
        a table with the number of each backend where the claim is a published point (mean over replications), and
        `off`: how far ours lies beyond the nearest edge of the band, as a share of that edge; 0 inside the band, null
        for orderings.
    """
    rows = [row for outcome in outcomes for row in _verdict_rows(outcome)]
    table = pl.DataFrame(rows, schema=_VERDICT_COLUMNS)
    order = [*_FIRST, *(reading for reading in READINGS if reading not in _FIRST)]
    place = pl.col("verdict").replace_strict({name: number for number, name in enumerate(order)}, return_dtype=pl.Int8)
    return table.sort(place, pl.col("off").abs().fill_null(0.0), descending=[False, True], maintain_order=True)


def agreement_of(outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """One row for each quantity and pair of backends, worst first.

    Returns:
        a table whose `share` is the difference over the bound on its side: more than 1 does not agree.
    """
    rows = []
    for outcome in outcomes:
        for item in outcome.agreement:
            low, high = item.allowed
            bound = low if item.difference < 0 else high
            share = math.inf if math.isnan(item.difference) else _share(item.difference, bound)
            rows.append(
                (find(outcome.experiment).paper, outcome.experiment, item.quantity, *item.backends, item.rows, item.of,
                 item.difference, low, high, share, item.independent, item.agrees)
            )  # fmt: skip
    return pl.DataFrame(rows, schema=_AGREEMENT_COLUMNS, orient="row").sort(
        "share", descending=True, maintain_order=True
    )


def write_findings(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Both tables as CSV files in a folder."""
    write_atomic(folder / VERDICTS, verdicts_of(outcomes).write_csv())
    write_atomic(folder / AGREEMENT, agreement_of(outcomes).write_csv())


def read_findings(folder: str | Path | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Verdicts and agreements that `write_findings` wrote.

    Parameters:
        folder: of a run of `workbench reproduce`; the committed gallery's when None.

    Raises:
        UserError: a file is not there, or holds no such table.
    """
    place = gallery_folder() if folder is None else given_path(folder, "folder").expanduser()
    return _read(place / VERDICTS, _VERDICT_COLUMNS), _read(place / AGREEMENT, _AGREEMENT_COLUMNS)


def _read(path: Path, columns: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    if not path.is_file():
        raise UserError(f"{path} is not there; `workbench reproduce all` writes it into the folder it writes to.")
    try:
        table = pl.read_csv(path, schema_overrides=columns)
        return table.select(pl.col(name).cast(kind) for name, kind in columns.items()).with_columns(
            pl.col(pl.String).fill_null("")
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        what = str(error).splitlines()[0]
        raise UserError(f"{path} is no table of findings ({what}); run `workbench reproduce` again.") from None


def _verdict_rows(outcome: Outcome) -> list[dict[str, object]]:
    numbers = _numbers(outcome)
    points = list(outcome.published.iter_rows(named=True))
    rows = []
    for place, verdict in enumerate(outcome.verdicts):
        found = {}
        if place < len(points):  # points are judged first, in their order
            point = points[place]
            found = numbers.get((point["series"], place_of(point["x"])), {})
        number = isinstance(verdict.ours, float)
        rows.append(
            {
                "paper": find(outcome.experiment).paper,
                "experiment": outcome.experiment,
                "claim": verdict.claim,
                "unit": found.get("unit", ""),
                **{column: found.get(backend) for backend, column in ANSWERS.items()},
                "ours": f"{verdict.ours:.6g}" if number else str(verdict.ours),
                "published": verdict.published,
                "verdict": verdict.verdict,
                "strength": verdict.strength,
                "off": _off(verdict),
                "mode": verdict.mode,
                "reason": verdict.reason,
            }
        )
    return rows


def _numbers(outcome: Outcome) -> dict[tuple[str, str | float], dict[str, object]]:
    """(series, x) -> the unit and each backend's mean over replications."""
    table = outcome.tables.get("headline")
    if table is None:
        return {}
    means = table.drop_nulls("value").group_by("series", "x", "unit", "backend", maintain_order=True)
    found: dict[tuple[str, str | float], dict[str, object]] = {}
    for series, x, unit, backend, value in means.agg(pl.col("value").mean()).iter_rows():
        found.setdefault((series, place_of(x)), {"unit": unit})[backend] = value
    return found


def _off(verdict: Verdict) -> float | None:
    if verdict.tolerance is None or not isinstance(verdict.ours, float):
        return None
    low, high = verdict.tolerance
    edge = low if verdict.ours < low else high if verdict.ours > high else verdict.ours
    return _share(verdict.ours - edge, abs(edge))


def _share(part: float, whole: float) -> float:
    if part == 0:
        return 0.0
    return part / whole if whole else math.copysign(math.inf, part)
