"""Seconds to load a model, by loader and place, beside measured runs."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.serving.load_time import LOADERS, STORAGES, series_of
from workbench.figures.base import GREY, SYMBOLS, WORDS, Palette, log_axis
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

BAND = 0.15
WAYS = [(loader, storage) for loader in LOADERS for storage in STORAGES]


def load_time(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Bars of the formula by way of loading, measured runs and their means over them, and how far the means are off."""
    table, runs = outcome.tables["loads"], outcome.tables.get("runs")
    first = table["backend"][0]
    models = table["model"].unique(maintain_order=True).to_list()
    palette = Palette(models)
    width = 0.86 / len(models)
    place = {
        (*way, model): index + (number - (len(models) - 1) / 2) * width
        for index, way in enumerate(WAYS)
        for number, model in enumerate(models)
    }
    ticks = {
        "range": [-0.5, len(WAYS) - 0.5],
        "tickvals": list(range(len(WAYS))),
        "ticktext": [f"{loader},<br>{where}" for loader, where in WAYS],
    }

    def at(part: pl.DataFrame) -> list[float]:
        return [place[key] for key in part.select("loader", "storage", "model").rows()]

    def times(made: Canvas, row: int) -> None:
        for model in models:
            colour = palette.colour(model)
            for (backend,), part in table.filter(pl.col("model") == model).group_by("backend", maintain_order=True):
                style = {"name": f"{model} ({WORDS[backend]})", "legendgroup": model}
                y = part["seconds"].to_list()
                if backend == first:
                    made.add(
                        bar(at(part), y, width=width * 0.92, marker={"color": colour, "opacity": 0.7}, **style), row=row
                    )
                else:
                    mark = {"symbol": SYMBOLS[backend], "size": 10, "color": colour, "line": {"width": 2}}
                    made.add(scatter(at(part), y, mode="markers", marker=mark, **style), row=row)
        if runs is not None:
            part = runs.filter(pl.col("backend") == runs["backend"][0])
            mark = {"symbol": "circle", "size": 4, "color": GREY}
            name = "one measured load"
            made.add(scatter(at(part), part["seconds"].to_list(), mode="markers", name=name, marker=mark), row=row)
        _means(made, row)
        made.x(row, **ticks).y(row, title="seconds")
        log_axis(made, "y", row=row, span=(0.1, 100))

    def _means(made: Canvas, row: int) -> None:
        known = {(series_of(*way), model): (*way, model) for way in WAYS for model in models}
        marks = [one for one in outcome.published.to_dicts() if (one["series"], one["x"]) in known]
        own = [one for one in marks if one["kind"] == "user"]
        for name, part in (
            ("mean of the measured loads", [one for one in marks if one not in own]),
            ("your points", own),
        ):
            if part:
                colour = GREY if not outcome.comparable and part is not own else "#d1495b"
                made.add(
                    scatter(
                        [place[known[one["series"], one["x"]]] for one in part],
                        [one["value"] for one in part],
                        mode="markers",
                        name=name,
                        marker={"symbol": "diamond-open", "size": 11, "color": colour, "line": {"width": 2}},
                        text=[one["source"] for one in part],
                        hovertemplate="%{y:.3f} s<br>%{text}<extra></extra>",
                    ),
                    row=row,
                )

    def errors(made: Canvas, row: int) -> None:
        part = table.filter((pl.col("backend") == first) & pl.col("measured_s").is_not_null())
        off = [seconds / measured - 1 for seconds, measured in part.select("seconds", "measured_s").rows()]
        made.add(
            bar(
                at(part),
                [value * 100 for value in off],
                width=width * 0.92,
                marker={"color": [palette.colour(model) for model in part["model"]], "opacity": 0.7},
                text=part["model"].to_list(),
                textposition="none",
                hovertemplate="%{text}: %{y:+.1f} %<extra></extra>",
                showlegend=False,
            ),
            row=row,
        )
        for edge in (-BAND, BAND):
            made.line(y=edge * 100, row=row, color=GREY, dash="dot", width=1.5)
        made.line(y=0, row=row, color=GREY, width=1)
        made.x(row, **ticks).y(row, title=f"formula over measured mean, % (dotted: {BAND * 100:.0f} %)")

    painters = {"times": ("bytes over bandwidth, and what was measured", times), "errors": ("how far off", errors)}
    return stack("Seconds to load a model", painters, panel, heights=(1.4, 1)).set(barmode="overlay")
