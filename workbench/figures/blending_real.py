"""BlendServe for real: a small job in four orders, and how two kinds of work overlap on this machine."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from workbench.blending.policy import overlapped_s
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, WORDS, Palette, log_axis
from workbench.figures.blending import grouped
from workbench.figures.canvas import Canvas, scatter
from workbench.figures.panels import Painter, stack

RATIOS = np.geomspace(0.2, 20, 81)


def real_orders(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds of a job by order and engine; beneath, where it ran for real, both kinds of work beside each other."""
    painters = {"orders": ("the job by order", _orders(outcome.tables))}
    if "slopes" in outcome.tables:
        painters["overlap"] = ("1: nothing is hidden", _overlap(outcome.tables))
    return stack("A real job in four orders", painters, panel if panel in painters else None).set(barmode="group")


def _orders(tables: Mapping[str, pl.DataFrame]) -> Painter:
    def paint(made: Canvas, row: int) -> None:
        table = tables["orders"]
        real = table["backend"][-1]
        bars = table.filter(pl.col("backend") == real)
        palette = Palette(bars["engine"].unique(maintain_order=True))
        made.add(*grouped(bars, "order", "seconds", "engine", palette, unit=" s"), row=row)
        if "predicted" in tables:
            for (engine,), part in tables["predicted"].group_by("engine", maintain_order=True):
                made.add(
                    scatter(
                        part["order"].to_list(), part["seconds"].to_list(), mode="markers",
                        name=f"{engine} (foretold)",
                        marker={"symbol": "x", "size": 9, "color": palette.colour(str(engine)),
                                "line": {"width": 1, "color": GREY}},
                    ),
                    row=row,
                )  # fmt: skip
        made.x(row, title="").y(row, title=f"seconds ({WORDS[real]})", rangemode="tozero")

    return paint


def _overlap(tables: Mapping[str, pl.DataFrame]) -> Painter:
    def paint(made: Canvas, row: int) -> None:
        palette = Palette(tables["slopes"]["work"])
        for one in tables["slopes"].iter_rows(named=True):
            name, colour = one["work"], palette.colour(one["work"])
            part = tables["pairs"].filter(pl.col("work") == name)
            compute, memory, together = (part[column].to_numpy() for column in ("compute_s", "memory_s", "together_s"))
            fitted = overlapped_s(RATIOS, 1.0, one["memory_slope"], one["compute_slope"]) / (RATIOS + 1)
            made.add(
                scatter(
                    (compute / memory).tolist(), (together / (compute + memory)).tolist(), mode="markers", name=name,
                    legendgroup=name, marker={"size": 8, "color": colour},
                ),
                scatter(
                    RATIOS.tolist(), fitted.tolist(), mode="lines", name=f"{name}, fitted", legendgroup=name,
                    line={"color": colour, "width": 2, "dash": palette.dash(name)},
                ),
                row=row,
            )  # fmt: skip
        made.line(y=1.0, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="compute over memory time").y(row, title="together / sum", rangemode="tozero")
        log_axis(made, "x", row=row)

    return paint
