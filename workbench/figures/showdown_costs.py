"""What saved GPU time is worth, and what two bursts cost each other (showdown/savings, showdown/two-bursts)."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.showdown.savings import FIXED, OWNED, PAID
from workbench.catalogue.showdown.two_bursts import ONE, TWO
from workbench.figures.base import GREY, Palette, curve
from workbench.figures.canvas import Canvas
from workbench.figures.panels import Painter, stack

SAVED = {"time_saved": "GPU time saved", "gpus_saved": "GPUs saved"}


def savings(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Shares saved and costs by correlation; cost of a GPU by the share of time in which it works."""
    chosen, share = outcome.parameters["correlation"], outcome.tables["saved"]["break_even"][0]

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
        if share <= 1:
            made.line(x=share, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="share of time at work", tickformat=".0%").y(row, title="USD an hour", rangemode="tozero")

    painters = {
        "saved": ("What is saved", saved),
        "cost": ("A million tokens", cost),
        "break-even": ("Buy or pay per use?" + (" Upright line: where both cost as much" if share <= 1 else ""), even),
    }
    return stack("GPU time is not GPUs bought", painters, panel)


def two_bursts(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds of both bursts by the gap between them: two models on shared cards, and one model twice."""
    table = outcome.tables["waits"].with_columns(series=pl.col("burst") + " burst, " + pl.col("way"))
    palette = Palette(table["series"].unique(maintain_order=True).to_list())

    def painter(case: str) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("case") == case)
            for name in part["series"].unique(maintain_order=True):
                traces = curve(part.filter(pl.col("series") == name), "gap_s", "seconds", name, palette)
                again = case != TWO and panel is None and name in table.filter(pl.col("case") == TWO)["series"]
                made.add(*({**trace, "showlegend": not again} for trace in traces), row=row)
            made.line(x=outcome.parameters["gap_s"], row=row, color=GREY, dash="dot", width=1)
            made.x(row, title="s between the bursts").y(row, title="s until weights are there", rangemode="tozero")

        return paint

    painters = {
        TWO: ("Two models on the same network cards", painter(TWO)),
        ONE: ("The same model again, during its multicast", painter(ONE)),
    }
    return stack("Two bursts close together", painters, panel)
