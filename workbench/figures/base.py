"""What all figures share: one template that reads in light and dark, and one meaning for each mark.

Colour and dash tell series apart, the kind of mark tells how a number was got: a line is a formula, an open circle a
simulation, a cross the compiled loop, a filled square a real run, a half-filled one a recorded run, an open diamond
what was published (grey when ours is not comparable to it).
"""

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.published import text_of
from workbench.figures.canvas import Canvas, Trace, scatter
from workbench.figures.ticks import log_ticks, short

COLOURS = ["#3b8ef0", "#e8833a", "#2ca58d", "#c45ab3", "#d1495b", "#8a7cf0", "#b89b2b", "#4fb3bf"]
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = {"analytic": "circle", "compiled": "x", "simpy": "circle-open", "torch": "square", "recorded": "square-dot"}
WORDS = {
    "analytic": "formula",
    "compiled": "compiled",
    "simpy": "simulation",
    "torch": "real run",
    "recorded": "recorded run",
}
KINDS = {"recorded in the artifact": "recorded by the authors", "computed": "own calculation", "user": "your points"}
GREY = "#8c8c8c"
INK = "#7a7a7a"
GRID = "rgba(128,128,128,.25)"

AXIS_ROOM, LEGEND_ROW, TITLE_ROOM = 62, 21, 64
"""Pixels below a plot for tick labels and the axis title, for a row of the legend, and above it for titles."""

LEGEND_WIDTH = 560
"""Pixels that a row of the legend may count on."""

NAME_LETTERS = 72
"""So many letters of a name fit a line of the legend on a page 900 pixels wide."""

_AXIS = {
    "gridcolor": GRID,
    "zerolinecolor": "rgba(128,128,128,.4)",
    "automargin": True,
    "exponentformat": "SI",
    "title": {"font": {"size": 13}, "standoff": 8},
}
TEMPLATE = {
    "layout": {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK, "size": 13},
        "colorway": COLOURS,
        "autotypenumbers": "strict",  # plotly forgets an axis's type when x or y change; texts such as "0.5" stay texts
        "margin": {"l": 60, "r": 20, "t": TITLE_ROOM, "b": AXIS_ROOM},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "legend": {"orientation": "h", "yanchor": "top", "x": 0, "font": {"size": 12}},
        "hoverlabel": {"namelength": -1},
    }
}

BUTTONS = {"responsive": True, "displaylogo": False, "showSendToCloud": False}
"""Plotly's settings beside a figure; without the last one its tool bar offers to upload the data."""

PATTERNS = {"analytic": "", "simpy": "/", "torch": "x", "recorded": "."}


def pattern(backend: str) -> str:
    """The hatching of a bar that a backend gave; a formula's is plain."""
    return PATTERNS.get(backend, "")


class Palette:
    """Gives each series its colour and dash, in order of first asking, whatever backend or panel it appears in."""

    def __init__(self, series: Sequence[str] = ()):
        self._place = {name: index for index, name in enumerate(dict.fromkeys(series))}

    def _index(self, name: str) -> int:
        return self._place.setdefault(name, len(self._place))

    def colour(self, name: str) -> str:
        """The series' colour."""
        return COLOURS[self._index(name) % len(COLOURS)]

    def dash(self, name: str) -> str:
        """The series' dash."""
        return DASHES[self._index(name) % len(DASHES)]


def figure(title: str, x: str, y: str, *, height: int = 420) -> Canvas:
    """An empty figure with its title and axes; axis titles carry their SI unit."""
    made = Canvas({"template": TEMPLATE, "title": {"text": title, "font": {"size": 15}}, "height": height})
    return made.x(title=x).y(title=y)


def settle(made: Canvas, width: int = LEGEND_WIDTH) -> Canvas:
    """Give the legend its own room below the axis titles: the figure grows by the rows that the legend needs.

    A name that is too long for a narrow page is broken into lines.
    """
    columns: dict[str, list[int]] = {}  # a legend group stands in one column, entries below each other
    letters = NAME_LETTERS * width // LEGEND_WIDTH
    for trace in made.data:
        if (name := trace.get("name")) and trace.get("showlegend") is not False:
            lines = wrap(name, letters)
            trace["name"] = "<br>".join(lines)
            columns.setdefault(trace.get("legendgroup") or name, []).extend(map(len, lines))
    rows, used, deepest = 0, 0.0, 0
    for lengths in columns.values():
        need = 48 + 6.6 * max(lengths)
        if used and used + need > width:
            rows, used, deepest = rows + deepest, 0.0, 0
        used, deepest = used + need, max(deepest, len(lengths))
    rows += deepest
    plot = made.layout["height"] - TITLE_ROOM - AXIS_ROOM
    legend = LEGEND_ROW * rows + (12 if rows else 0)
    height = plot + TITLE_ROOM + AXIS_ROOM + legend
    return made.set(
        height=height,
        margin={"t": TITLE_ROOM, "b": AXIS_ROOM + legend},
        legend={"y": -AXIS_ROOM / plot},
        title={"y": 1 - 14 / height, "yanchor": "top", "x": 0.02, "xanchor": "left"},
    )


def log_axis(made: Canvas, *axes: str, row: int = 1, span: tuple[float, float] | None = None) -> Canvas:
    """Make axes ("x", "y") logarithmic, with a label at each tick, over what a row shows so far or over a span."""
    for axis in axes:
        settings: dict[str, Any] = {"type": "log"}
        if span is not None:
            settings["range"] = [math.log10(edge) for edge in span]
        if extent := span or made.extent(axis, row):
            places = log_ticks(*extent)
            settings |= {"tickmode": "array", "tickvals": places, "ticktext": [short(place) for place in places]}
        (made.x if axis == "x" else made.y)(row, **settings)
    return made


def curve(table: pl.DataFrame, x: str, y: str, series: str, palette: Palette, *, name: str = "") -> list[Trace]:
    """One series of a table, one trace a backend: a line (the mean of several runs) for the formula and for compiled
    runs, marks for others."""
    traces = []
    for (backend,), part in table.group_by("backend", maintain_order=True):
        part = part.sort(x)
        line = backend in ("analytic", "compiled")
        if line and "replication" in part.columns and part["replication"].n_unique() > 1:
            part = part.group_by(x, maintain_order=True).agg(pl.col(y).mean())
        colour = palette.colour(series)
        traces.append(
            scatter(
                part[x].to_list(),
                part[y].to_list(),
                name=f"{name or series} ({WORDS[backend]})",
                mode="lines" if line and len(part) > 1 else "markers",
                line={"color": colour, "dash": palette.dash(series), "width": 2},
                marker={"color": colour, "symbol": SYMBOLS[backend], "size": 9, "line": {"width": 2}},
                legendgroup=series,
            )
        )
    return traces


def published_marks(
    outcome: Outcome, palette: Palette, *, series: Mapping[str, str] | None = None, x: Mapping[str, Any] | None = None,
    on_bars: bool = False,
) -> list[Trace]:  # fmt: skip
    """Published points, and the reader's own, as open diamonds with their bands; hovering shows kind and source.

    Parameters:
        series: published series -> the series whose colour it takes; others are left out, but for the reader's own.
        x: published x text -> place on the axis, where the two differ.
        on_bars: they lie on bars of the colours that they would take, and are grey.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    series = series or {}
    for row in outcome.published.iter_rows(named=True):
        if row["series"] in series or row["kind"] == "user":
            groups.setdefault((row["series"], row["kind"]), []).append(row)
    traces = []
    for (name, kind), rows in groups.items():
        colour = palette.colour(series.get(name, name)) if outcome.comparable or kind == "user" else GREY
        colour = GREY if on_bars else colour
        centres = [_centre(row) for row in rows]
        mark = {"symbol": "diamond-open", "size": 12, "color": colour, "line": {"width": 2, "color": colour}}
        trace = scatter(
            [_place(row["x"], x) for row in rows],
            centres,
            name=f"{name} ({KINDS.get(kind, kind)})",
            mode="markers",
            marker=mark,
            text=[f"{text_of(row)} {row['unit']}<br>{row['kind']}: {row['source']}" for row in rows],
            hovertemplate="%{text}<extra>%{fullData.name}</extra>",
            legendgroup=series.get(name, name),
        )
        if any(row["low"] is not None and row["high"] is not None for row in rows):
            trace["error_y"] = {
                "type": "data",
                "symmetric": False,
                "array": [_reach(row["high"], centre) for row, centre in zip(rows, centres, strict=True)],
                "arrayminus": [-_reach(row["low"], centre) for row, centre in zip(rows, centres, strict=True)],
                "color": colour,
            }
        traces.append(trace)
    return traces


def _centre(row: dict[str, Any]) -> float:
    known = [row[name] for name in ("low", "high") if row[name] is not None]
    return row["value"] if row["value"] is not None else sum(known) / len(known)


def _place(text: str, places: Mapping[str, Any] | None) -> Any:
    if places is not None and text in places:
        return places[text]
    try:
        return float(text)
    except ValueError:
        return text


def _reach(edge: float | None, centre: float) -> float:
    return 0.0 if edge is None else edge - centre
