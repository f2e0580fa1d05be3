"""An offline job beside online requests (showdown/valleys)."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.showdown.valleys import ALONE, LAST, WAYS
from workbench.figures.base import COLOURS, WORDS, Palette, curve
from workbench.figures.canvas import Canvas, bar
from workbench.figures.panels import stack


def valleys(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Requests a second of both by online load, promises kept, and the end of a job by its order."""
    means = pl.col("online_per_s", "job_per_s", "kept").cast(pl.Float64).mean()
    table = outcome.tables["served"].group_by("backend", "way", "share", maintain_order=True).agg(means)
    palette = Palette(("the job", "online requests", *WAYS))

    def job(made: Canvas, row: int) -> None:
        part = table.filter(pl.col("way") == LAST)
        for column, name in (("job_per_s", "the job"), ("online_per_s", "online requests")):
            made.add(*curve(part, "share", column, name, palette), row=row)
        made.x(row, title="online load", tickformat=".0%").y(row, title="requests a second", rangemode="tozero")

    def kept(made: Canvas, row: int) -> None:
        for way in WAYS:
            part = table.filter((pl.col("way") == way) & pl.col("kept").is_not_null())
            made.add(*curve(part, "share", "kept", way, palette), row=row)
        made.x(row, title="online load", tickformat=".0%").y(
            row, title="promise kept", tickformat=".0%", range=[0, 1.04]
        )

    def orders(made: Canvas, row: int) -> None:
        ends = outcome.tables["orders"].group_by("backend", "order", maintain_order=True).agg(pl.col("seconds").mean())
        for place, ((backend,), part) in enumerate(ends.group_by("backend", maintain_order=True)):
            made.add(
                bar(
                    part["order"].to_list(), part["seconds"].to_list(), name=f"job done ({WORDS[backend]})",
                    marker={"color": COLOURS[place], "pattern": {"shape": ("", "/", ".")[place % 3]}},
                ),
                row=row,
            )  # fmt: skip
        made.set(barmode="group").y(row, title="seconds", rangemode="tozero")

    painters = {"job": ("What fits beside online requests", job)}
    if table.filter((pl.col("way") == ALONE) & pl.col("kept").is_not_null()).height:
        painters["kept"] = ("Online requests whose promise is kept", kept)
    painters["orders"] = ("A job of two kinds is done after", orders)
    return stack("An offline job in an online instance's valleys", painters, panel if panel in painters else None)
