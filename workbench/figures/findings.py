"""One figure of the whole project: what verdicts read, how far off those are that differ, and how backends agree."""

from typing import Any

import polars as pl

from workbench.figures.base import COLOURS, GREY, WORDS, Palette, settle
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack
from workbench.figures.text import SHADES
from workbench.results import READINGS

COUNTED = ("reproduced", "undecided", "differs")
HATCHES = {"not comparable": "/", "not possible": "x", "fitted": "."}
"""Readings that are grey are told apart by hatching; a calculation is plain."""


def whole_project(verdicts: pl.DataFrame, agreement: pl.DataFrame) -> dict[str, Any]:
    """Three panels, as a dict of `data` and `layout`.

    Parameters:
        verdicts, agreement: see `catalogue.findings`.
    """
    painters = {
        "counts": ("What verdicts read", lambda made, row: _counts(made, row, verdicts)),
        "off": ("Verdicts that differ, worst first", lambda made, row: _off(made, row, verdicts)),
        "backends": ("Backends laid side by side, worst first", lambda made, row: _backends(made, row, agreement)),
    }
    made = stack("Formula, simulation, real runs and what was published", painters, None)
    return settle(made.set(barmode="stack")).to_dict()


def _counts(made: Canvas, row: int, verdicts: pl.DataFrame) -> None:
    papers = sorted(verdicts["paper"].unique())
    for name in (*COUNTED, *(reading for reading in READINGS if reading not in COUNTED)):
        part = verdicts.filter(pl.col("verdict") == name)
        if part.is_empty():
            continue
        counts = [part.filter(pl.col("paper") == paper).height for paper in papers]
        mark = {"color": SHADES[name], "pattern": {"shape": HATCHES.get(name, "")}}
        made.add(bar(papers, counts, name=name, marker=mark, hovertemplate=f"%{{x}}: %{{y}} {name}"), row=row)
    made.y(row, title="verdicts")


def _off(made: Canvas, row: int, verdicts: pl.DataFrame) -> None:
    worst = verdicts.filter(pl.col("verdict") == "differs", pl.col("off").is_finite())
    palette = Palette(sorted(verdicts["paper"].unique()))
    for paper in sorted(worst["paper"].unique()):
        part = worst.with_row_index("rank", offset=1).filter(pl.col("paper") == paper)
        said = (part["experiment"] + ": " + part["claim"]).to_list()
        mark = {"color": palette.colour(paper), "size": 8}
        hover = "%{customdata}<br>%{y:.1%} beyond the edge"
        made.add(
            scatter(part["rank"], part["off"].abs(), mode="markers", name=f"differs, {paper}", marker=mark,
                    customdata=said, hovertemplate=hover), row=row,
        )  # fmt: skip
    made.x(row, title="rank").y(row, title="beyond the band's edge", tickformat=".0%", rangemode="tozero")


def _backends(made: Canvas, row: int, agreement: pl.DataFrame) -> None:
    ranked = agreement.with_row_index("rank", offset=1)
    pairs = ranked.select("first", "second", "independent").unique(maintain_order=True).sort("first", "second")
    for place, (first, second, independent) in enumerate(pairs.iter_rows()):
        part = ranked.filter(pl.col("first") == first, pl.col("second") == second, independent=independent)
        said = (part["experiment"] + ": " + part["quantity"]).to_list()
        mark = {"color": COLOURS[place % len(COLOURS)] if independent else GREY, "size": 7}
        name = f"{WORDS[first]} and {WORDS[second]}" + ("" if independent else ", same decisions")
        made.add(
            scatter(part["rank"], part["share"], mode="markers", name=name, marker=mark, customdata=said,
                    hovertemplate="%{customdata}<br>%{y:.0%} of what is allowed"), row=row,
        )  # fmt: skip
    made.line(y=1.0, row=row, dash="dash", color=GREY)
    made.x(row, title="rank").y(row, title="of what is allowed", tickformat=".0%", rangemode="tozero")
