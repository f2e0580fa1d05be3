"""Pools of rarely asked models (showdown/pool, showdown/pool-multicast)."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.showdown.pool import SYSTEMS as POOLED
from workbench.catalogue.showdown.pool_multicast import MEMORY, SENT, STORE
from workbench.figures.base import COLOURS, GREY, Palette, curve, log_axis
from workbench.figures.canvas import Canvas, bar
from workbench.figures.panels import Painter, stack
from workbench.figures.showdown import pareto

SYSTEMS = tuple(POOLED)


def lines(outcome: Outcome) -> Painter:
    """Attainment by number of models, means over seeds, a line for each system."""
    pools = outcome.tables["pools"].group_by("backend", "system", "models", maintain_order=True)
    table, palette = pools.agg(pl.col("attainment").mean()), Palette(SYSTEMS)

    def paint(made: Canvas, row: int) -> None:
        for name in table["system"].unique(maintain_order=True):
            made.add(*curve(table.filter(pl.col("system") == name), "models", "attainment", name, palette), row=row)
        made.line(y=0.9, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="models").y(row, title="kept", tickformat=".0%")

    return paint


def pool(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Attainment by models, what the most of them cost in GPU time, and how many are active."""

    def active(made: Canvas, row: int) -> None:
        table, palette = outcome.tables["active"], Palette()
        made.add(*curve(table, "models", "mean_active", "active models", palette), row=row)
        some = table.drop_nulls("most")
        made.add(*curve(some, "models", "most", "active in 1 % of time", palette), row=row)
        made.x(row, title="models").y(row, title="models", rangemode="tozero")

    painters = {}
    if "pools" in outcome.tables:
        titles = ("GPU-seconds more than dedicated", "attainment more")
        painters = {
            "attainment": ("Promise kept, by the paper's definition; dotted: 90 %", lines(outcome)),
            "pareto": (
                "With most models: paired differences from dedicated GPUs (95 %)",
                pareto(outcome, "gpu_allocated_s", "attainment", titles, SYSTEMS),
            ),
        }
    painters["active"] = ("Models that are active", active)
    return stack("Who pools the long tail?", painters, panel if panel in painters else None)


def pool_multicast(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds of a switch by receivers, and attainment by models, for each source of the weights."""

    def switch(made: Canvas, row: int) -> None:
        palette, table = Palette((MEMORY, SENT, STORE)), outcome.tables["switch"]
        for name in table["source"].unique(maintain_order=True):
            part = table.filter(pl.col("source") == name)
            made.add(*curve(part, "hosts", "seconds", name, palette, name=f"switch, {name}"), row=row)
        made.x(row, title="hosts that receive").y(row, title="seconds of a switch")
        log_axis(made, "y", row=row)

    painters = {}
    if "switch" in outcome.tables:
        painters["switch"] = ("A switch of the mean model", switch)
    if "pools" in outcome.tables:
        painters["attainment"] = ("Aegaeon's promise kept, by the paper's definition", kept_bars(outcome))
    return stack("A pool that is loaded by multicast", painters, panel if panel in painters else None)


def kept_bars(outcome: Outcome) -> Painter:
    """Attainment by source of the weights, a group of bars for each number of models."""

    def paint(made: Canvas, row: int) -> None:
        table = outcome.tables["pools"].filter(pl.col("backend") == outcome.tables["pools"]["backend"][0])
        means = table.group_by("source", "models", maintain_order=True).agg(pl.col("attainment").mean())
        for place, name in enumerate(means["source"].unique(maintain_order=True)):
            part = means.filter(pl.col("source") == name)
            x = [f"{count} models" for count in part["models"]]
            marker = {"color": COLOURS[place], "pattern": {"shape": ("", "/", ".")[place]}}
            made.add(bar(x, part["attainment"].to_list(), name=f"kept, {name}", marker=marker), row=row)
        made.set(barmode="group").y(row, title="kept", tickformat=".0%", rangemode="tozero")

    return paint
