"""Two instances that share batches: the slots of both, and when batches are done."""

import polars as pl

from workbench.catalogue.blitzscale.fig8 import SCALE
from workbench.catalogue.blitzscale.fig8_race import WEIGHTS
from workbench.catalogue.blitzscale.fig9 import HALF, WAYS
from workbench.catalogue.blitzscale.fig15 import ALONE, FINISH, SHOWN
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, GREY, SYMBOLS, WORDS, Palette, pattern, published_marks
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack

FEW = 24
"""Batches whose numbers stand in their slots."""
EDGE = {"width": 1, "color": "rgba(0,0,0,.3)"}


def batch_bar(part: pl.DataFrame, places: list[str], batch: int, numbered: bool, hover: str) -> Trace:
    """One batch's slots: a bar from start to end, in layer times, at each instance that runs some of its layers.

    Parameters:
        part: the batch's rows of the table `slots`.
        places: name of the instance of each row.
        batch: from 1 on; numbers tell neighbours apart where they fit.
        numbered: whether they do.
        hover: what a bar says.
    """
    return bar(
        (part["end_layers"] - part["start_layers"]).to_list(),
        places,
        base=part["start_layers"].to_list(),
        orientation="h",
        name=f"batch {batch}",
        showlegend=False,
        marker={"color": COLOURS[(batch - 1) % len(COLOURS)], "line": EDGE},
        text=[str(batch) if numbered else ""] * len(part),
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": "white", "size": 11},
        constraintext="none",
        hovertemplate=f"{hover}, from %{{base:.4g}}, %{{x:.4g}} layer times<extra></extra>",
    )


def slots(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale's Figure 15: a chart of both instances under one rule, and finish times under all."""
    parameters = outcome.parameters
    palette = Palette(SHOWN)

    def chart(made: Canvas, row: int) -> None:
        table = outcome.tables["slots"]
        table = table.filter(pl.col("backend") == table["backend"][0])
        for (batch,), part in table.group_by("batch", maintain_order=True):
            places = [f"{name} instance" for name in part["instance"]]
            made.add(batch_bar(part, places, batch, parameters["batches"] <= FEW, "%{fullData.name}"), row=row)
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


def interference(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale's Figures 7 and 8: a load's stretch by KV's share of the link, and what both do to each other."""
    tables = outcome.tables
    palette = Palette(("same direction", "opposite direction", SCALE))

    def share(made: Canvas, row: int) -> None:
        table = tables["share"].filter(pl.col("backend") == tables["share"]["backend"][0])
        for (direction,), part in table.group_by("direction", maintain_order=True):
            line = {"color": palette.colour(direction), "dash": palette.dash(direction), "width": 2}
            made.add(
                scatter(
                    (part["kv_share"] * 100).to_list(), part["load_ratio"].to_list(), mode="lines",
                    name=f"{direction} (formula)", line=line, legendgroup=direction,
                ),
                row=row,
            )  # fmt: skip
        for (backend,), part in tables["here"].group_by("backend", maintain_order=True):
            colours = [palette.colour(direction) for direction in part["direction"]]
            made.add(
                scatter(
                    (part["kv_share"] * 100).to_list(), part["load_ratio"].to_list(), mode="markers",
                    name=f"as set ({WORDS[backend]})",
                    marker={"symbol": SYMBOLS[backend], "size": 11, "color": colours, "line": {"width": 2}},
                ),
                row=row,
            )  # fmt: skip
        made.x(row, title="KV's share of the link, %").y(row, title="load over idle link", rangemode="tozero")

    def ratios(made: Canvas, row: int) -> None:
        labels = {"load_ratio": "load of weights", "kv_ratio": "KV of a batch"}
        for (backend,), part in tables["loads"].group_by("backend", maintain_order=True):
            for direction, *values in part.select("direction", *labels).iter_rows():
                made.add(
                    bar(
                        list(labels.values()), values, name=f"{direction} ({WORDS[backend]})",
                        marker={"color": palette.colour(direction), "pattern": {"shape": pattern(backend)}},
                        text=[f"{value:.2f}" for value in values], textposition="outside", cliponaxis=False,
                        legendgroup=direction,
                    ),
                    row=row,
                )  # fmt: skip
        mark = published_marks(outcome, palette, series={SCALE: SCALE}, x={"same direction": "load of weights"})
        made.add(*mark, row=row).y(row, title="over the time without", rangemode="tozero").set(barmode="group")

    def race(made: Canvas, row: int) -> None:
        table = tables["race"].filter(flow=WEIGHTS)
        for (backend, direction), part in table.group_by("backend", "direction", maintain_order=True):
            made.add(
                bar(
                    [f"draw {draw}" for draw in part["draw"]], part["seconds"].to_list(),
                    name=f"{direction} ({WORDS[backend]})", legendgroup=direction, showlegend=panel == "race",
                    marker={"color": palette.colour(direction), "pattern": {"shape": pattern(backend)}},
                    text=[f"{value:.2f}" for value in part["seconds"]], textposition="outside", cliponaxis=False,
                ),
                row=row,
            )  # fmt: skip
        made.y(row, title="load of weights, s", rangemode="tozero").set(barmode="group")

    painters = {
        "share": ("by KV's share of the link", share),
        "ratios": ("as set", ratios),
        "race": ("beside one and the same sequence of KV", race),
    }
    return stack("Weights and KV on one link", painters, panel)


def staircase(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale's Figure 21: prefill tokens per second while instances are added, and how long loads take."""
    tables = outcome.tables
    systems = tables["loads"]["system"].unique(maintain_order=True).to_list()
    palette = Palette(systems)

    def tokens(made: Canvas, row: int) -> None:
        table = tables["tokens"].filter(pl.col("backend") == tables["tokens"]["backend"][0])
        for (system,), part in table.group_by("system", maintain_order=True):
            line = {"color": palette.colour(system), "dash": palette.dash(system), "width": 2, "shape": "hv"}
            made.add(
                scatter(
                    part["time_s"].to_list(), (part["tokens_per_s"] / 1e3).to_list(), mode="lines",
                    name=f"{system} (formula)", line=line, legendgroup=system,
                ),
                row=row,
            )  # fmt: skip
        for (backend,), part in tables["loads"].group_by("backend", maintain_order=True):
            made.add(
                scatter(
                    part["first_extra_s"].to_list(), [0.0] * len(part), mode="markers",
                    name=f"first batch done sooner ({WORDS[backend]})", cliponaxis=False,
                    marker={
                        "symbol": SYMBOLS[backend], "size": 11, "line": {"width": 2},
                        "color": [palette.colour(system) for system in part["system"]],
                    },
                ),
                row=row,
            )  # fmt: skip
        made.x(row, title="since the decision, s").y(row, title="prefill, thousand tokens/s", rangemode="tozero")

    def loads(made: Canvas, row: int) -> None:
        table = tables["loads"].filter(pl.col("backend") == tables["loads"]["backend"][0])
        made.add(
            bar(
                table["system"].to_list(), table["load_s"].to_list(), name="load time (formula)",
                marker={"color": [palette.colour(system) for system in table["system"]]},
                text=[f"{value:.2f} s" for value in table["load_s"]], textposition="outside", cliponaxis=False,
                showlegend=False,
            ),
            row=row,
        )  # fmt: skip
        published = outcome.published["series"].unique(maintain_order=True)
        loaded = [series for series in published if series.endswith("are loaded")]
        made.add(*published_marks(outcome, Palette(["", "", *loaded]), series={one: one for one in loaded}), row=row)
        made.y(row, title="all loaded after, s", rangemode="tozero")

    painters = {"tokens": ("capacity while layers come", tokens), "loads": ("load time", loads)}
    return stack(f"{outcome.parameters['wanted']} instances added", painters, panel)
