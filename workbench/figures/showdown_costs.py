"""What saved GPU time is worth (showdown/savings)."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.showdown.savings import FIXED, OWNED, PAID
from workbench.figures.base import GREY, Palette, curve
from workbench.figures.canvas import Canvas
from workbench.figures.panels import stack

SAVED = {"time_saved": "GPU time saved", "gpus_saved": "GPUs saved"}


def savings(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Shares saved and costs by correlation; cost of a GPU by the share of time in which it works."""
    chosen = outcome.parameters["correlation"]

    def saved(made: Canvas, row: int) -> None:
        palette = Palette(tuple(SAVED.values()))
        for column, name in SAVED.items():
            made.add(*curve(outcome.tables["saved"], "correlation", column, name, palette), row=row)
        made.line(x=chosen, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="correlation of two models' bursts").y(row, title="saved", tickformat=".0%")

    def cost(made: Canvas, row: int) -> None:
        palette = Palette((FIXED, OWNED, PAID))
        for name in (FIXED, OWNED, PAID):
            part = outcome.tables["paid"].filter((pl.col("way") == name) & pl.col("usd_per_million").is_not_nan())
            made.add(*curve(part, "correlation", "usd_per_million", name, palette), row=row)
        made.line(x=chosen, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="correlation of two models' bursts").y(
            row, title="USD per million tokens", rangemode="tozero"
        )

    def even(made: Canvas, row: int) -> None:
        palette, table = Palette((FIXED, "a GPU, bought", "a GPU, pay per use")), outcome.tables["even"]
        table = table.filter(pl.col("backend") == table["backend"][0])
        for name in ("bought", "pay per use"):
            part = table.filter(pl.col("way") == name)
            made.add(*curve(part, "used_share", "usd_per_hour", f"a GPU, {name}", palette), row=row)
        share = outcome.tables["saved"]["break_even"][0]
        if share <= 1:
            made.line(x=share, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="share of time at work", tickformat=".0%").y(row, title="USD an hour", rangemode="tozero")

    painters = {
        "saved": ("What is saved", saved),
        "cost": ("A million tokens", cost),
        "break-even": ("Buy or pay per use?", even),
    }
    return stack("GPU time is not GPUs bought", painters, panel)
