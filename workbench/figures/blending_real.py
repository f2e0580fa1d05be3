"""BlendServe for real: a small job in four orders, and how two kinds of work overlap on this machine."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from workbench.blending.policy import overlapped_s
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, INK, WORDS, Palette, log_axis
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import Painter, stack

RATIOS = np.geomspace(0.2, 20, 81)


def real_orders(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds of a job by order and engine; beneath, where it ran for real, both kinds of work beside each other."""
    painters = {"orders": ("the job by order", _orders(outcome.tables))}
    if "slopes" in outcome.tables:
        painters["overlap"] = ("both kinds of work beside each other (1: nothing hidden)", _overlap(outcome.tables))
    return stack("A real job in four orders", painters, panel if panel in painters else None).set(barmode="overlay")


def _orders(tables: Mapping[str, pl.DataFrame]) -> Painter:
    def paint(made: Canvas, row: int) -> None:
        table = tables["orders"]
        real = table["backend"][-1]
        bars = table.filter(pl.col("backend") == real)
        orders, engines = (bars[name].unique(maintain_order=True).to_list() for name in ("order", "engine"))
        palette, width = Palette(engines), 0.8 / len(engines)

        def places(part: pl.DataFrame, engine: str) -> list[float]:
            shift = (engines.index(engine) - (len(engines) - 1) / 2) * width
            return [orders.index(order) + shift for order in part["order"]]

        for engine in engines:
            part = bars.filter(pl.col("engine") == engine)
            seconds, colour = part["seconds"].to_list(), palette.colour(engine)
            made.add(
                bar(
                    places(part, engine), seconds, width=width * 0.94, name=engine, marker={"color": colour},
                    text=[f"{value:.2f}" for value in seconds], textposition="outside", textfont={"size": 10},
                    cliponaxis=False, customdata=part["order"].to_list(),
                    hovertemplate="%{customdata}: %{y:.3g} s<extra>%{fullData.name}</extra>",
                ),
                row=row,
            )  # fmt: skip
        if "predicted" in tables:
            at = [place for engine in engines for place in places(tables["predicted"].filter(engine=engine), engine)]
            said = [second for engine in engines for second in tables["predicted"].filter(engine=engine)["seconds"]]
            look = {"symbol": "x", "size": 9, "color": INK, "line": {"width": 1, "color": "white"}}
            made.add(scatter(at, said, mode="markers", name="foretold from both parts", marker=look), row=row)
        made.x(row, title="order of the requests", tickvals=list(range(len(orders))), ticktext=orders)
        made.y(row, title=f"seconds ({WORDS[real]})", rangemode="tozero")

    return paint


def _overlap(tables: Mapping[str, pl.DataFrame]) -> Painter:
    def paint(made: Canvas, row: int) -> None:
        palette = Palette(tables["slopes"]["work"])
        for one in tables["slopes"].iter_rows(named=True):
            name, colour = one["work"], palette.colour(one["work"])
            part = tables["pairs"].filter(pl.col("work") == name)
            compute, memory, together = (part[column].to_numpy() for column in ("compute_s", "memory_s", "together_s"))
            fitted = overlapped_s(RATIOS, np.ones_like(RATIOS), one["memory_slope"], one["compute_slope"]) / (
                RATIOS + 1
            )
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
