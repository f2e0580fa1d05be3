"""A trace on a number of instances: how many requests have their first token, and their further ones, in what time."""

from pathlib import Path

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.figures.base import GREY, Palette, curve, log_axis, published_marks
from workbench.figures.canvas import Canvas
from workbench.figures.panels import stack

PANELS = {"ttft": ("TTFT", "ttft_s", "Time to the first token"), "tpot": ("TPOT", "tbt_s", "Time per further token")}


def times(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Share of requests by time, alone and among all others; the promise is a dotted line."""
    table, parameters = outcome.tables["times"], outcome.parameters
    names = [f"{what}{whose}" for what, *_ in PANELS.values() for whose in ("", ", alone")]
    palette = Palette(names)

    def painter(what: str, promise: str):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter((pl.col("what") == what) & pl.col("seconds").is_not_nan())
            for name in part["series"].unique(maintain_order=True):
                made.add(*curve(part.filter(pl.col("series") == name), "seconds", "share", name, palette), row=row)
            made.add(*(_turned(mark) for mark in published_marks(outcome, palette)), row=row)
            made.line(x=parameters[promise], row=row, color=GREY, dash="dot", width=1)
            made.x(row, title="seconds").y(row, title="requests", range=[0, 1.02], tickformat=".0%")
            low, high = made.extent("x", row) or (parameters[promise], parameters[promise])
            log_axis(
                made, "x", row=row, span=(min(low, parameters[promise]) / 1.1, max(high, parameters[promise]) * 1.1)
            )

        return paint

    title = f"{Path(parameters['trace']).name} on {parameters['instances']} x {name_of(parameters['model'])}"
    painters = {key: (text, painter(what, promise)) for key, (what, promise, text) in PANELS.items()}
    return stack(title, painters, panel)


def _turned(mark: dict) -> dict:
    """Points lie as (share, seconds); the axes are the other way round."""
    return {**mark, "x": mark["y"], "y": mark["x"]}
