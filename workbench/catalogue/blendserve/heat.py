"""Figures 11 and 13 to 15: gain over the order down the tree, over density and sharing ratio, for four mixes.

The grid is cut into cells so that a sweep can share them out: `wb.sweep("blendserve/fig11", grid={"densities": [(0.8,),
...], "sharings": [(0.05,), ...]})` runs one cell a task, keeps each, and goes on where it stopped.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Annotated, Any

import polars as pl

from workbench.blending.model.synthesis import NoSuchMix
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_DFS,
    Setup,
    cite_sources,
    costs_for,
    limits,
    made,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import STRONGER
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Assumption, Match

GAIN = f"{BLEND} over {NF_DFS}"
UNLABELLED = "no printed label"
SHARINGS = (0.05, 0.15, 0.25, 0.35, 0.45)
QUICK = {"burstgpt-like": 400_000}
QUICK_OTHERS = 200_000

COLUMNS = {
    **dict.fromkeys(("density", "sharing", "gain", "share", "tokens_per_s", "dfs_tokens_per_s"), pl.Float64),
    "impossible": pl.String,
}

BETWEEN = "rows of the figure; one without a printed label lies midway between the labels beside it"
Densities = Annotated[
    tuple[float, ...], Par("Densities", low=0.3, high=3.0, status="published", source="rows of the figure")
]
Rows = Annotated[tuple[float, ...], Par("Densities", low=0.3, high=3.0, status="inferred", source=BETWEEN)]
Sharings = Annotated[
    tuple[float, ...], Par("Sharing ratios", low=0.02, high=0.6, status="published", source="columns of the figure")
]
SHORT = Assumption("a cell has as many requests as §6.2 says", {"requests": "40,000"})
SLOPES = Assumption("kernels disturb each other as NanoFlow measured", {"overlap": STRONGER})
"""What moves the gain: stronger interference lowers it, fewer requests raise it."""


def say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    """The gain over the cells of a map, in one sentence; and one on cells that no mix has."""
    every = tables["cells"].filter(pl.col("replication") == 0)
    table = possible(every)
    lacking = _lacking(every)
    best, least = table.sort("gain").row(-1, named=True), table.sort("gain").row(0, named=True)
    if len(table) == 1:
        at = f"a density of {best['density']:g} and a sharing ratio of {best['sharing']:g}"
        return f"At {at} the gain is {best['gain']:.3f}.{lacking}"
    rows = table.group_by("density").agg(pl.mean("gain")).sort("density")
    ends = f"{rows['gain'][0]:.3f} to {rows['gain'][-1]:.3f}"
    rise = f"; from the lowest density to the highest it goes from {ends}" if len(rows) > 1 else ""
    return (
        f"Over {len(table)} cells the gain is {table['gain'].mean():.3f} on average, from {least['gain']:.3f} (density "
        f"{least['density']:g}, sharing {least['sharing']:g}) to {best['gain']:.3f} ({best['density']:g}, "
        f"{best['sharing']:g}){rise}.{lacking}"
    )


def _lacking(table: pl.DataFrame) -> str:
    """A sentence on the cells of which there is no mix, the first three by name."""
    cells = table.filter(pl.col("impossible") != "").select("density", "sharing").rows()
    if not cells:
        return ""
    named = "; ".join(f"density {density:g}, sharing {ratio:g}" for density, ratio in cells[:3])
    return f" There is no mix for {named}" + (f", and for {len(cells) - 3} more." if len(cells) > 3 else ".")


def sampled(values: Sequence[float], count: int) -> tuple[float, ...]:
    """At most so many of the values, evenly spread, the first and the last among them."""
    places = range(min(count, len(values)))
    return tuple(values[round(place * (len(values) - 1) / max(len(places) - 1, 1))] for place in places)


def cells(
    context: Context, main: str, model: str, accelerator: str, densities: Sequence[float], sharings: Sequence[float],
    requests: str, scan: str, overlap: str, series: Mapping[float, str] | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Gain and share of the practical optimum at every point; in quick mode at two densities and two ratios.

    Where no mix has a density and a ratio, `impossible` says why, and the numbers are null. A map has the published
    `series` of its rows too, and is drawn cell by cell.

    Raises:
        NoSuchMix: there is none at any point.
    """
    costs, rates = costs_for(context, model, accelerator), rates_of(context, accelerator, overlap)
    cite_sources(context, main)
    engine, rows, refused = rates.engine(costs), [], None
    if context.mode == "quick":
        densities, sharings = sampled(densities, 2), sampled(sharings, 2)
    for density in densities:
        for ratio in sharings:
            context.tell(f"density {density:g}, sharing {ratio:g}")
            setup = Setup(
                costs, main, density, ratio, size_of(context, requests, QUICK.get(main, QUICK_OTHERS)), context.seed
            )
            try:
                pool = made(setup).mix.pool
            except NoSuchMix as none:
                refused = none
                rows.append({"density": density, "sharing": ratio, "impossible": str(none)})
                continue
            blend, down = (served(setup, system, scan=scan).throughput(pool, engine) for system in (BLEND, NF_DFS))
            best = pool.tokens / limits(setup, rates).practical_s
            rows.append(
                {"density": density, "sharing": ratio, "gain": blend / down, "share": blend / best,
                 "tokens_per_s": blend, "dfs_tokens_per_s": down, "impossible": ""}
            )  # fmt: skip
            if series is not None:
                context.so_far({"cells": with_series(pl.DataFrame(rows, schema=COLUMNS), series)})
    table = pl.DataFrame(rows, schema=COLUMNS)
    if refused is not None and possible(table).is_empty():
        raise refused
    return table if series is None else with_series(table, series)


def possible(table: pl.DataFrame) -> pl.DataFrame:
    """The cells of which there is a mix."""
    return table.filter(pl.col("impossible") == "")


def row_series(source: str, labels: Sequence[float], of: int) -> dict[float, str]:
    """The published series of each row of a map, by density, from the top.

    Every second row has a printed label, the first among them. A row between two labels is taken to lie midway; a last
    one below the last label is taken to lie as far from it as the one above.

    >>> list(row_series("ShareGPT", (1.0, 1.2), 4))
    [1.0, 1.1, 1.2, 1.3]
    """
    series = {}
    for row in range(1, of + 1):
        above, labelled = (row - 1) // 2, row % 2 == 1
        if labelled:
            density = labels[above]
        elif above + 1 < len(labels):
            density = (labels[above] + labels[above + 1]) / 2
        else:
            density = labels[above] + (labels[above] - labels[above - 1]) / 2
        label = f"density {density:.2f}" if labelled else UNLABELLED
        series[round(density, 4)] = f"{GAIN}, {source}, row {row} of {of} ({label}), x = sharing ratio"
    return series


def row_matches(series: Mapping[float, str]) -> tuple[Match, ...]:
    """What is said of the verdicts on a map of which every second row has a printed label."""
    between = tuple(name for name in series.values() if UNLABELLED in name)
    note = "no label is printed at this row, its density is taken from those beside it"
    return Match(between, note=note, assumptions=(SLOPES, SHORT)), Match(assumptions=(SLOPES, SHORT))


def with_series(table: pl.DataFrame, series: Mapping[float, str]) -> pl.DataFrame:
    """The cells, each with the published series its row belongs to (empty where the figure has no such row)."""
    return table.with_columns(
        pl.col("density").replace_strict(series, default="", return_dtype=pl.String).alias("series")
    )


def grid_headline(table: pl.DataFrame, more: Sequence[tuple]) -> pl.DataFrame:
    """Headline rows of the cells, by their series, and of the whole grid."""
    rows = table.filter(pl.col("gain").is_not_null()).iter_rows(named=True)
    known = [(row["series"], row["sharing"], row["gain"], "1") for row in rows if row["series"]]
    return headline([*known, *more])


def is_whole(table: pl.DataFrame, densities: Iterable[float], sharings: Sequence[float]) -> bool:
    """Whether the cells are those of the published map: what is said of all of them is withheld for a part."""
    known = table.filter(pl.col("gain").is_not_null())
    return set(known.select("density", "sharing").rows()) == set(product(densities, sharings))


def rows_headline(
    table: pl.DataFrame, series: Mapping[float, str], source: str, sharings: Sequence[float]
) -> pl.DataFrame:
    """Headline rows of a map of which every second row has a printed label."""
    gain = table["gain"]
    more = [
        (f"{GAIN}, {source}, mean of the printed cells", "", gain.mean(), "1"),
        (f"{GAIN}, smallest of the cells", "", gain.min(), "1"),
        (f"{GAIN}, largest of the cells", "", gain.max(), "1"),
    ]
    return grid_headline(table, more if is_whole(table, series, sharings) else ())
