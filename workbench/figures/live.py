"""Two instances that share batches: the slots of both, and when batches are done."""

import polars as pl

from workbench.catalogue.blitzscale.fig9 import HALF, WAYS
from workbench.catalogue.blitzscale.fig15 import ALONE, FINISH, SHOWN
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, GREY, SYMBOLS, WORDS, Palette, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

FEW = 24
"""Batches whose numbers stand in their slots."""
EDGE = {"width": 1, "color": "rgba(0,0,0,.3)"}


def slots(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale's Figure 15: a chart of both instances under one rule, and finish times under all."""
    parameters = outcome.parameters
    palette = Palette(SHOWN)

    def chart(made: Canvas, row: int) -> None:
        table = outcome.tables["slots"]
        table = table.filter(pl.col("backend") == table["backend"][0])
        for (batch,), part in table.group_by("batch", maintain_order=True):
            length = (part["end_layers"] - part["start_layers"]).to_list()
            made.add(
                bar(
                    length,
                    [f"{name} instance" for name in part["instance"]],
                    base=part["start_layers"].to_list(),
                    orientation="h",
                    name=f"batch {batch}",
                    showlegend=False,
                    marker={"color": COLOURS[(batch - 1) % len(COLOURS)], "line": EDGE},
                    text=[str(batch) if parameters["batches"] <= FEW else ""] * len(part),
                    textposition="inside",
                    insidetextanchor="middle",
                    textangle=0,
                    textfont={"color": "white", "size": 11},
                    constraintext="none",
                    hovertemplate="batch %{fullData.name}, from %{base:.4g}, %{x:.4g} layer times<extra></extra>",
                ),
                row=row,
            )
        made.x(row, title="layer times").y(row, ticklabelstandoff=6, categoryarray=["old instance", "new instance"])
        made.y(row, categoryorder="array").set(barmode="overlay")

    def finish(made: Canvas, row: int) -> None:
        table = outcome.tables["batches"]
        for (backend,), part in table.group_by("backend", maintain_order=True):
            first = backend == table["backend"][0]
            for (rule,), line in part.group_by("rule", maintain_order=True):
                colour = palette.colour(rule)
                made.add(
                    scatter(
                        line["batch"].to_list(),
                        line["finish_layers"].to_list(),
                        name=f"{rule} ({WORDS[backend]})",
                        mode="lines" if first and len(line) > 1 else "markers",
                        line={"color": colour, "dash": palette.dash(rule), "width": 2},
                        marker={"color": colour, "symbol": SYMBOLS[backend], "size": 9, "line": {"width": 2}},
                        legendgroup=rule,
                    ),
                    row=row,
                )
        own = {series: series.removeprefix(f"{FINISH}, ") for series in outcome.published["series"] if FINISH in series}
        if (parameters["batches"], parameters["layers"], parameters["load_layers"]) == (7, 7, 6.0):
            made.add(*published_marks(outcome, palette, series={s: r for s, r in own.items() if r in SHOWN}), row=row)
        made.x(row, title="batch").y(row, title="done after, layer times", rangemode="tozero")

    shown = outcome.tables["slots"]["rule"][0] if len(outcome.tables["slots"]) else ALONE
    painters = {"slots": (f"who runs what: {shown} (numbers: batches)", chart), "finish": ("done", finish)}
    about = f"{parameters['batches']} batches, {parameters['layers']} layers"
    return stack(
        f"{about}; a layer loads in {parameters['load_layers']:g} layer times", painters, panel, heights=(0.75, 1.2)
    )


def timelines(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale's Figure 9: batches done over time in three ways, and throughput by layers loaded."""
    parameters, tables = outcome.parameters, outcome.tables
    palette = Palette(WAYS)

    def done(made: Canvas, row: int) -> None:
        for (backend,), part in tables["done"].group_by("backend", maintain_order=True):
            first = backend == tables["done"]["backend"][0]
            for (way,), line in part.group_by("way", maintain_order=True):
                colour = palette.colour(way)
                made.add(
                    scatter(
                        [0.0, *line["layer_times"].to_list()] if first else line["layer_times"].to_list(),
                        [0, *line["batch"].to_list()] if first else line["batch"].to_list(),
                        name=f"{way} ({WORDS[backend]})",
                        mode="lines" if first else "markers",
                        line={"color": colour, "dash": palette.dash(way), "width": 2, "shape": "hv"},
                        marker={"color": colour, "symbol": SYMBOLS[backend], "size": 8, "line": {"width": 2}},
                        legendgroup=way,
                    ),
                    row=row,
                )
        loaded = (parameters["layers"] - 1) * parameters["load_layers"]
        made.line(x=loaded, row=row, color=GREY, dash="dot", width=1.5)
        made.x(row, title="layer times (dotted: the last layer is there)", rangemode="tozero")
        made.y(row, title="batches done")

    def throughput(made: Canvas, row: int) -> None:
        for (backend,), part in tables["throughput"].group_by("backend", maintain_order=True):
            first = backend == tables["throughput"]["backend"][0]
            made.add(
                scatter(
                    part["loaded"].to_list(),
                    part["gain"].to_list(),
                    name=f"throughput ({WORDS[backend]})",
                    mode="lines" if first else "markers",
                    line={"color": COLOURS[4], "width": 2},
                    marker={"color": COLOURS[4], "symbol": SYMBOLS[backend], "size": 9, "line": {"width": 2}},
                ),
                row=row,
            )
        if parameters["layers"] == 7:
            places = {"7 layers, as claimed": 3.5, "7 layers, computed": 4}
            made.add(*published_marks(outcome, palette, series={HALF: HALF}, x=places), row=row)
        made.x(row, title="layers on the new instance").y(row, title="over one instance", rangemode="tozero")

    painters = {"done": ("batches done", done), "throughput": ("throughput while layers come", throughput)}
    about = f"{parameters['layers']} layers, a layer loads in {parameters['load_layers']:g} layer times"
    return stack(about, painters, panel)
