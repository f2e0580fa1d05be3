"""Promises kept while a cluster grows: against the stop of each scale-up, and against detection and loading."""

import polars as pl

from workbench.catalogue.blitzscale.fig3 import AT_220, FOR_STOP, STOPS_S
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.figures.base import COLOURS, GREY, SYMBOLS, WORDS, Palette, log_axis, published_marks
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack

KINDS = {"ttft_kept": ("TTFT", "solid"), "tbt_kept": ("TPOT", "dot"), "both_kept": ("both", "dash")}


def _curves(table: pl.DataFrame, x: str, column: str, name: str, colour: str) -> list[Trace]:
    """A line with marks for the first backend, marks alone for the others."""
    words, dash = KINDS[column]
    traces = []
    for (backend,), part in table.group_by("backend", maintain_order=True):
        part, first = part.sort(x), backend == table["backend"][0]
        mark = {"symbol": SYMBOLS[backend], "size": 6 if first else 12, "color": colour, "line": {"width": 2}}
        traces.append(
            scatter(
                part[x].to_list(),
                (part[column] * 100).to_list(),
                name=f"{name}{words} ({WORDS[backend]})",
                mode="lines+markers" if first else "markers",
                line={"color": colour, "dash": dash, "width": 2},
                marker=mark,
            )
        )
    return traces


def stops(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale's Figure 3: promises kept, bandwidth that a stop takes, network that is left."""
    tables = outcome.tables

    def promises(made: Canvas, row: int) -> None:
        if "kept" in tables:
            for colour, ((name,), part) in zip(
                COLOURS, tables["kept"].group_by("served", maintain_order=True), strict=False
            ):
                for column in ("ttft_kept", "tbt_kept"):
                    made.add(*_curves(part, "stop_s", column, f"{name}: ", colour), row=row)
        ends = [-0.15, STOPS_S[-1] + 0.15]  # set here, since nothing is drawn before a run
        made.x(row, title="stop of each scale-up, s", range=ends)
        made.y(row, title="requests that keep it, %", range=[0, 103])

    def bandwidth(made: Canvas, row: int) -> None:
        if "bandwidth" in tables:
            for colour, ((name,), part) in zip(
                COLOURS, tables["bandwidth"].group_by("served", maintain_order=True), strict=False
            ):
                made.add(
                    scatter(
                        part["stop_s"].to_list(), (part["bytes_per_s"] * 8e-9).to_list(), mode="lines",
                        name=f"{name} (formula)", line={"color": colour, "width": 2},
                        showlegend=panel == "bandwidth" or "kept" not in tables,
                    ),
                    row=row,
                )  # fmt: skip
            published = outcome.published.filter(pl.col("series").is_in([FOR_STOP, AT_220]))
            for series, value in published.select("series", "value").iter_rows():
                place = (0.5, value * 8e-9) if series == FOR_STOP else (value, 220.0)
                mark = {"symbol": "diamond-open", "size": 11, "color": COLOURS[1], "line": {"width": 2}}
                made.add(scatter([place[0]], [place[1]], mode="markers", name=series, marker=mark), row=row)
        made.x(row, title="stop, s").y(row, title="Gbps a GPU")
        log_axis(made, "y", row=row)

    def network(made: Canvas, row: int) -> None:
        if "network" in tables:
            table = tables["network"]
            made.add(
                bar(
                    (table["share"] * 100).to_list(), table["served"].to_list(), orientation="h", name="KV egress",
                    marker={"color": COLOURS[2]}, showlegend=False,
                ),
                row=row,
            )  # fmt: skip
        made.x(row, title="of a 100 Gbps card a GPU, %").y(row, autorange="reversed", ticklabelstandoff=6)

    painters = {
        "kept": ("promises kept", promises),
        "bandwidth": ("weights within a stop", bandwidth),
        "network": ("KV that leaves at full prefill speed", network),
    }
    made = stack("What a stop costs", painters, panel)
    made.add(*published_marks(outcome, Palette()))
    return made


def start_up(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Promises kept against start-up seconds, with the start-ups that bytes and bandwidths give."""
    tables = outcome.tables

    def cliff(made: Canvas, row: int) -> None:
        if "kept" in tables:
            for colour, column in zip(COLOURS, KINDS, strict=False):
                made.add(*_curves(tables["kept"], "start_s", column, "", colour), row=row)
        if "starts" in tables:
            for index, item in enumerate(tables["starts"].to_dicts()):
                dash = ("dot", "dash", "dashdot", "longdash", "solid")[index % 5]
                name = f"{item['way']}: {item['seconds']:.3g} s"
                line = {"color": GREY, "dash": dash, "width": 1.5}
                made.add(scatter([item["seconds"]] * 2, [0, 100], mode="lines", name=name, line=line), row=row)
        made.x(row, title="start-up of an instance, s").y(row, title="requests that keep it, %", range=[0, 103])
        log_axis(made, "x", row=row)

    def starts(made: Canvas, row: int) -> None:
        if "starts" in tables:
            table = tables["starts"]
            for index, part in enumerate(("engine_s", "weights_s")):
                made.add(
                    bar(
                        table[part].to_list(), table["way"].to_list(), orientation="h",
                        name={"engine_s": "engine and warm-up", "weights_s": "weights (bytes over bandwidth)"}[part],
                        marker={"color": COLOURS[4 + index]}, showlegend=True,
                    ),
                    row=row,
                )  # fmt: skip
            made.set(barmode="stack")
        made.x(row, title="seconds").y(row, autorange="reversed", ticklabelstandoff=6)

    about = f"{name_of(outcome.parameters['model'])} on {name_of(outcome.parameters['cluster'])}"
    painters = {"cliff": ("promises kept", cliff), "starts": ("what a start-up takes", starts)}
    return stack(f"The start-up cliff: {about}", painters, panel)


def detection(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Promises kept by detection delay and load seconds; above the line detection takes longer than loading."""
    table = outcome.tables["kept"]
    table = table.filter(pl.col("backend") == table["backend"][0])
    loads, delays = sorted(table["load_s"].unique()), sorted(table["detect_s"].unique())

    def grid(made: Canvas, row: int) -> None:
        lookup = {(item["detect_s"], item["load_s"]): item["both_kept"] * 100 for item in table.to_dicts()}
        values = [[lookup[delay, load] for load in loads] for delay in delays]
        made.add(
            {
                "type": "heatmap", "x": [f"{load:g}" for load in loads], "y": [f"{delay:g}" for delay in delays],
                "z": values, "colorscale": "Viridis", "colorbar": {"title": {"text": "kept, %"}},
                "text": [[f"{value:.0f}" for value in line] for line in values], "texttemplate": "%{text}",
                "hovertemplate": "detected after %{y} s, loaded in %{x} s: %{z:.1f} %<extra></extra>",
            },
            row=row,
        )  # fmt: skip
        both = [value for value in loads if value in delays]
        made.add(
            scatter(
                [f"{value:g}" for value in both], [f"{value:g}" for value in both], mode="lines+markers",
                name="detection takes as long as loading", line={"color": COLOURS[4], "width": 2},
                marker={"color": COLOURS[4], "size": 26, "symbol": "circle-open", "line": {"width": 2}},
            ),
            row=row,
        )  # fmt: skip
        made.x(row, title="loading, s", type="category").y(row, title="detection delay, s", type="category")

    def along(made: Canvas, row: int) -> None:
        for colour, (column, name) in zip(COLOURS, (("load_s", "loading"), ("detect_s", "detection")), strict=False):
            other = "detect_s" if column == "load_s" else "load_s"
            part = table.filter(pl.col(other) == min(table[other])).sort(column)
            made.add(
                scatter(
                    part[column].to_list(), (part["both_kept"] * 100).to_list(), mode="lines+markers",
                    name=f"{name} alone grows", line={"color": colour, "width": 2}, marker={"size": 7},
                ),
                row=row,
            )  # fmt: skip
        made.x(row, title="seconds").y(row, title="requests that keep both, %", range=[0, 103])

    painters = {"grid": ("both promises kept, %", grid), "along": ("which of the two hurts more", along)}
    about = f"{name_of(outcome.parameters['model'])} on {name_of(outcome.parameters['cluster'])}"
    return stack(f"Detection and loading: {about}", painters, panel, heights=(1.4, 1.0))
