"""Execution pipelines inside chains (showdown/pipelines-in-chains)."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.showdown.pipelines_in_chains import EVEN, WAYS
from workbench.figures.base import GREY, Palette, curve, log_axis
from workbench.figures.canvas import Canvas
from workbench.figures.panels import stack


def pipelines_in_chains(outcome: Outcome, panel: str | None = None) -> Canvas:
    """The mean answer by link, with the link at which a first job is as soon either way; and jobs done over time."""
    palette = Palette(WAYS)
    served, done = outcome.tables["served"], outcome.tables["done"]
    even = outcome.tables["headline"].filter(pl.col("series") == EVEN)["value"]
    counts = done.group_by("backend", "way", pl.col("seconds").round(9), maintain_order=True).agg(pl.max("jobs"))
    begin = counts.select("backend", "way").unique(maintain_order=True).with_columns(seconds=0.0, jobs=0)
    counts = pl.concat([begin, counts], how="vertical_relaxed")

    def answer(made: Canvas, row: int) -> None:
        for way in WAYS:
            made.add(*curve(served.filter(pl.col("way") == way), "gbit_per_s", "mean_s", way, palette), row=row)
        made.x(row, title="link, Gbit/s").y(row, title="mean answer, s")
        log_axis(log_axis(made, "x", row=row), "y", row=row)
        if len(even):
            made.line(x=even[0], row=row, color=GREY, dash="dot", width=1)

    def over_time(made: Canvas, row: int) -> None:
        for way in WAYS:
            for trace in curve(counts.filter(pl.col("way") == way), "seconds", "jobs", way, palette):
                shown = {"line": {**trace["line"], "shape": "hv"}, "showlegend": row == 1}
                made.add({**trace, **shown}, row=row)
        made.x(row, title="s since loading began").y(row, title="jobs", rangemode="tozero")

    dotted = "; dotted: the link at which a first job is answered as soon either way" if len(even) else ""
    painters = {
        "answer": (f"Until a waiting job is answered{dotted}", answer),
        "done": ("Jobs done over time, on the chosen link", over_time),
    }
    return stack("Execution pipelines inside chains", painters, panel)
