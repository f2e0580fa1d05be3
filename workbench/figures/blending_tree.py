"""BlendServe's prefix tree, drawn as a tree, and what splitting it buys."""

import math
from typing import Any

import polars as pl

from workbench.blending.model.staging import BUILT, STAGES
from workbench.catalogue.blendserve.tree_steps import REQUEST, SHARED, UNIT
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, Palette, figure
from workbench.figures.blending import first
from workbench.figures.canvas import Canvas, scatter
from workbench.figures.panels import stack

WIDEST = 12
"""Pixels of the edge with most tokens."""
CROWD = 30
"""From so many nodes on, marks and edges are smaller."""
DEEPEST = 1.0
"""Decades of density at which colours end, on both sides of 1."""
SCALE = [[0.0, "#d1495b"], [0.5, "#96969f"], [1.0, "#2f7fe0"]]
"""From reading memory over equal work to computing."""
_SIZES = {REQUEST: 20, SHARED: 13, UNIT: 26}
_SYMBOLS = {REQUEST: "circle", SHARED: "square", UNIT: "hexagon"}
_NAMES = {
    REQUEST: "request (ring: sampled, diamond: moved)",
    SHARED: "shared segment",
    UNIT: "unit (how many requests)",
}


def steps(outcome: Outcome, _: str | None = None) -> Canvas:
    """The tree at the chosen step: edges as wide as their tokens, nodes coloured by density."""
    number = outcome.parameters["step"]
    nodes = first(outcome.tables["nodes"])
    last, stage = int(nodes["level"].max()), STAGES[number - 1]
    widest = max(nodes.filter(pl.col("step") == number)["tokens"].max(), 1)
    shown = nodes.filter(pl.col("step") == number)
    made = figure(f"Step {number} of {len(STAGES)}: {stage}", "place in the order", "level", height=190 + 85 * last)
    wide = WIDEST / 2 if len(shown) > CROWD else WIDEST
    where = {row["node"]: (row["place"] + 1, -row["level"]) for row in shown.iter_rows(named=True)}
    for row in shown.filter(pl.col("level") > 0).iter_rows(named=True):
        (x, y), (above_x, above_y) = where[row["node"]], where[row["parent"]]
        made.add(
            scatter(
                [above_x, x], [above_y, y], mode="lines", showlegend=False, hoverinfo="skip",
                line={"color": "rgba(140,140,140,.55)", "width": 1 + (wide - 1) * row["tokens"] / widest},
            )
        )  # fmt: skip
    for kind in (SHARED, REQUEST, UNIT):
        part = shown.filter((pl.col("kind") == kind) & (pl.col("level") > 0))
        if len(part):
            made.add(_marks(part, kind, stage, len(shown)))
    made.add(scatter([where[0][0]], [0], mode="markers", name="root", showlegend=False, hoverinfo="skip",
                     marker={"size": 12, "color": GREY, "symbol": "square"}))  # fmt: skip
    if stage != BUILT:
        made.add(_colours())
    places = nodes.filter(pl.col("kind") == REQUEST)["place"].max() + 1
    ends = "" if stage in STAGES[:2] else "; most compute on the left, most memory on the right"
    made.x(range=[0.0, places + 1.0], title=f"place in the order{ends}", showgrid=False, zeroline=False)
    made.y(tickvals=[-level for level in range(last + 1)], ticktext=[str(level) for level in range(last + 1)],
           range=[-last - 0.45, 0.35], title="level", zeroline=False)  # fmt: skip
    return made


def _marks(part: pl.DataFrame, kind: str, stage: str, crowd: int) -> dict[str, Any]:
    """The nodes of one kind."""
    crowded = crowd > CROWD
    size, more = (_SIZES[kind] - 3, 1) if crowded else (_SIZES[kind], 4)
    label = {REQUEST: "request", UNIT: "requests", SHARED: None}[kind]
    ring = [3 if sampled and stage != BUILT else 0 for sampled in part["sampled"]]
    density = part["density"].to_list()
    known = [value is not None for value in density]
    colour = [math.log10(value) if value else 0.0 for value in density] if all(known) else GREY
    return scatter(
        (part["place"] + 1).to_list(), (-part["level"]).to_list(), name=_NAMES[kind],
        mode="markers+text" if label else "markers",
        text=part[label].cast(pl.String).to_list() if label else None,
        textfont={"color": "white", "size": 11},
        marker={
            "symbol": ["diamond" if moved and kind == REQUEST else _SYMBOLS[kind] for moved in part["moved"]],
            "size": [size + more if moved and kind == REQUEST else size for moved in part["moved"]],
            "color": colour, "colorscale": SCALE, "cmin": -DEEPEST, "cmax": DEEPEST,
            "line": {"color": "#e8833a", "width": ring}, "opacity": 1,
        },
        customdata=[
            [f"{tokens:,} prompt tokens of its own", "not known yet" if value is None else f"{value:.2f}"]
            for tokens, value in zip(part["tokens"], density, strict=True)
        ],
        hovertemplate="%{customdata[0]}; density %{customdata[1]}<extra>" + _NAMES[kind] + "</extra>",
    )  # fmt: skip


def _colours() -> dict[str, Any]:
    """A trace that shows nothing but the scale of colours."""
    ticks = (0.1, 0.3, 1.0, 3.0, 10.0)
    return scatter(
        [None], [None], mode="markers", showlegend=False, hoverinfo="skip",
        marker={
            "color": [0.0], "colorscale": SCALE, "cmin": -DEEPEST, "cmax": DEEPEST, "showscale": True,
            "colorbar": {
                "title": {"text": "density"}, "thickness": 14, "tickvals": [math.log10(tick) for tick in ticks],
                "ticktext": [f"{tick:g}" for tick in ticks],
            },
        },
    )  # fmt: skip


def thresholds(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Order and throughput against the sharing that is kept, a point for each threshold; the chosen one starred."""
    table = first(outcome.tables["thresholds"]).sort("threshold_tokens")
    palette = Palette(["falling", "share"])
    chosen = table.filter(pl.col("chosen"))

    def painter(column: str, title: str, words: str, **axis: Any):
        def paint(made: Canvas, row: int) -> None:
            made.add(
                scatter(
                    table["kept"].to_list(), table[column].to_list(), mode="lines+markers", name="a threshold each",
                    showlegend=row == 1, marker={"size": 9, "color": palette.colour(column)},
                    line={"color": palette.colour(column), "dash": "dot", "width": 1},
                    customdata=table["threshold_tokens"].to_list(),
                    hovertemplate="up to %{customdata:,.0f} tokens a split: %{y:.3f}<extra></extra>",
                ),
                scatter(
                    chosen["kept"].to_list(), chosen[column].to_list(), mode="markers+text", showlegend=row == 1,
                    name="the largest that keeps 99 %", textposition=f"{words} left",
                    text=[f"{tokens:,.0f} tokens" for tokens in chosen["threshold_tokens"]],
                    marker={"symbol": "star", "size": 15, "color": palette.colour(column)},
                ),
                row=row,
            )  # fmt: skip
            made.line(x=0.99, row=row, color=GREY, dash="dash", width=1)
            made.x(row, title="sharing kept over the largest possible", tickformat=".0%").y(row, title=title, **axis)

        return paint

    painters = {
        "order": ("how well densities fall", painter("falling", "rank correlation", "bottom")),
        "throughput": ("what it gains", painter("share", "share of the optimum", "top", tickformat=".1%")),
    }
    return stack("What the threshold of splitting buys", painters, panel)
