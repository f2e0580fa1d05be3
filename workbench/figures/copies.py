"""Plans, copies and links of a cluster that brings weights to where they are needed."""

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.fig19 import WAYS
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.figures.base import COLOURS, GREY, SYMBOLS, WORDS, Palette, curve, figure, log_axis, pattern
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack


def gaps(outcome: Outcome, panel: str | None = None) -> Canvas:
    """How many random clusters have a greedy plan that takes at most so many times as long as the best one."""
    table = outcome.tables["gaps"]
    rules = table["rule"].unique(maintain_order=True).to_list()
    palette = Palette(rules)
    made = figure("The greedy plan against the best one", "time of the greedy plan over the best", "clusters, %")
    for rule in rules:
        ratios = np.sort(table.filter(pl.col("rule") == rule)["ratio"].to_numpy())
        share = 100 * np.arange(1, ratios.size + 1) / ratios.size
        line = {"color": palette.colour(rule), "dash": palette.dash(rule), "width": 2, "shape": "hv"}
        made.add(
            scatter([1.0, *ratios.tolist()], [0.0, *share.tolist()], mode="lines", name=f"{rule} (formula)", line=line)
        )
    return made.y(range=[0, 103])


def redundancy(outcome: Outcome, panel: str | None = None) -> Canvas:
    """What host copies cost and what they save, by how many there are of each model."""
    table = outcome.tables["copies"]
    settings = {
        "unreachable": ("an idle model is out of reach", "probability", 1.0),
        "bytes": ("weights in hosts' memory", "GB", 1e-9),
        "recovery_s": ("until all copies are there again, on average", "s", 1.0),
    }

    def painter(column: str):
        def paint(made: Canvas, row: int) -> None:
            for (backend,), part in table.group_by("backend", maintain_order=True):
                part = part.group_by("copies", maintain_order=True).agg(pl.col(column).mean())
                values = (part[column] * settings[column][2]).to_list()
                made.add(
                    bar(
                        [str(copies) for copies in part["copies"]], values, name=WORDS[backend],
                        marker={"color": COLOURS[0], "pattern": {"shape": pattern(backend)}},
                        text=[f"{value:.3g}" for value in values], textposition="outside", cliponaxis=False,
                        showlegend=row == 1, legendgroup=backend,
                    ),
                    row=row,
                )  # fmt: skip
            made.x(row, title="host copies of each model", type="category").y(
                row, title=settings[column][1], rangemode="tozero"
            )

        return paint

    painters = {
        name: (settings[column][0], painter(column))
        for name, column in (("unreachable", "unreachable"), ("bytes", "bytes"), ("recovery", "recovery_s"))
    }
    parameters = outcome.parameters
    return stack(f"{parameters['failed']} of {parameters['hosts']} hosts fail at once", painters, panel)


def links(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale's Tables 1 and 2: seconds of bringing a model's weights to an accelerator, by link and machine."""
    table = outcome.tables["links"].drop_nulls("load_s")
    names = table["link"].unique(maintain_order=True).to_list()
    palette = Palette(names)
    made = figure(f"Weights of {name_of(outcome.parameters['model'])} on one accelerator", "seconds", "", height=520)
    for index, name in enumerate(names):
        part = table.filter(pl.col("link") == name)
        made.add(
            scatter(
                part["load_s"].to_list(), part["cluster"].to_list(), mode="markers", name=f"{name} (formula)",
                marker={
                    "color": palette.colour(name), "size": 12,
                    "symbol": ("circle", "square", "triangle-up", "star", "cross")[index % 5],
                },
                hovertemplate="%{y}: %{x:.3g} s<extra>%{fullData.name}</extra>",
            )
        )  # fmt: skip
    log_axis(made, "x")
    return made.y(autorange="reversed", ticklabelstandoff=6)


def copies(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale's Figure 19: host copies over time in two ways, and on average by keep-alive."""
    tables = outcome.tables
    palette = Palette(WAYS)

    def over_time(made: Canvas, row: int) -> None:
        first = tables["copies"]["backend"][0]
        for (way,), part in tables["copies"].filter(backend=first).group_by("way", maintain_order=True):
            changes = part.filter(
                (pl.col("copies") != pl.col("copies").shift()).fill_null(True)
                | pl.col("time_s").eq(pl.col("time_s").max())
            )
            line = {"color": palette.colour(way), "dash": palette.dash(way), "width": 2, "shape": "hv"}
            made.add(
                scatter(
                    changes["time_s"].to_list(), changes["copies"].to_list(), mode="lines",
                    name=f"{way} ({WORDS[first]})", line=line, legendgroup=way,
                ),
                row=row,
            )  # fmt: skip
        made.x(row, title="seconds").y(row, title="host copies", rangemode="tozero")

    def by_keep(made: Canvas, row: int) -> None:
        if "keep" in tables:
            table = tables["keep"].filter(backend=tables["keep"]["backend"][0])
            line = {"color": palette.colour(WAYS[1]), "dash": palette.dash(WAYS[1]), "width": 2}
            made.add(
                scatter(
                    table["keep_s"].to_list(), table["copies"].to_list(), mode="lines+markers",
                    name=f"{WAYS[1]} (formula)", line=line, legendgroup=WAYS[1], showlegend=panel == "keep",
                    marker={"symbol": SYMBOLS["analytic"], "size": 7},
                ),
                row=row,
            )  # fmt: skip
        made.line(y=1.0, row=row, color=palette.colour(WAYS[0]), dash="dash", width=1.5)
        made.x(row, title="keep-alive, s (dashed: one copy)").y(row, title="copies on average", rangemode="tozero")
        log_axis(made, "x", row=row)

    painters = {"copies": ("copies over time", over_time), "keep": ("by keep-alive", by_keep)}
    return stack("Copies of one model in hosts' memory", painters, panel)


def one_copy(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale §5.3: bytes in hosts' memory by hosts, and misses of a second burst by time to live."""
    tables = outcome.tables
    palette = Palette(tables["bytes"]["way"].unique(maintain_order=True).to_list())

    def size(made: Canvas, row: int) -> None:
        for (way,), part in tables["bytes"].group_by("way", maintain_order=True):
            made.add(*curve(part, "hosts", "bytes", way, palette), row=row)
        made.x(row, title="hosts", dtick=1).y(row, title="bytes in hosts' memory", rangemode="tozero")

    def misses(made: Canvas, row: int) -> None:
        made.add(*curve(tables["misses"], "keep_s", "missed", "starts that miss", palette), row=row)
        made.line(x=outcome.parameters["gap_s"], row=row, color=GREY, dash="dot", width=1.5)
        made.x(row, title="time to live, s (dotted: from burst to burst)", rangemode="tozero")
        made.y(row, title="starts that miss", rangemode="tozero")

    painters = {"bytes": ("bytes by number of hosts", size), "misses": ("misses of the second burst", misses)}
    return stack("One host copy of each model", painters, panel)
