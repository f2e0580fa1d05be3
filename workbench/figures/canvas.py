"""A figure while it is being drawn: plain dicts, made into a plotly `Figure` once, at the end.

A graph object validates at every assignment, which costs tens of milliseconds a figure; an explorer redraws at every
move of a slider.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

Trace = dict[str, Any]


class Canvas:
    """Traces and layout of a figure with one plot, or with several one above the other (rows count from 1).

    Attributes:
        data: plotly traces as dicts.
        layout: the plotly layout as a dict.
    """

    def __init__(self, layout: Mapping[str, Any]):
        self.data: list[Trace] = []
        self.layout: dict[str, Any] = dict(layout)

    def add(self, *traces: Trace, row: int = 1) -> "Canvas":
        """Add traces to a row."""
        axes = {} if row == 1 else {"xaxis": f"x{row}", "yaxis": f"y{row}"}
        self.data += [{**trace, **axes} for trace in traces]
        return self

    def x(self, row: int = 1, **settings: Any) -> "Canvas":
        """Set properties of a row's horizontal axis; `title` is its text."""
        return self._axis("xaxis", row, settings)

    def y(self, row: int = 1, **settings: Any) -> "Canvas":
        """Set properties of a row's vertical axis; `title` is its text."""
        return self._axis("yaxis", row, settings)

    def extent(self, axis: str, row: int = 1) -> tuple[float, float] | None:
        """Smallest and largest positive number drawn along "x" or "y" of a row; None where there is none."""
        name = axis if row == 1 else f"{axis}{row}"
        numbers = [
            value
            for trace in self.data
            if trace.get(f"{axis}axis", axis) == name
            for value in trace[axis]
            if isinstance(value, int | float) and 0 < value < math.inf
        ]
        return (min(numbers), max(numbers)) if numbers else None

    def line(self, *, x: float | None = None, y: float | None = None, row: int = 1, **style: Any) -> "Canvas":
        """A vertical line at x, or a horizontal one at y, across a row."""
        number = "" if row == 1 else str(row)
        xs, ys = ((x, x), (0, 1)) if y is None else ((0, 1), (y, y))
        shape = {"type": "line", "x0": xs[0], "x1": xs[1], "y0": ys[0], "y1": ys[1], "line": style}
        shape |= {"xref": f"x{number}" + ("" if y is None else " domain")}
        shape |= {"yref": f"y{number}" + (" domain" if y is None else "")}
        self.layout.setdefault("shapes", []).append(shape)
        return self

    def note(self, text: str, **place: Any) -> "Canvas":
        """A text on the paper."""
        self.layout.setdefault("annotations", []).append({"text": text, "showarrow": False, **place})
        return self

    def set(self, **settings: Any) -> "Canvas":
        """Set properties of the layout."""
        merge(self.layout, settings)
        return self

    def to_dict(self) -> dict[str, Any]:
        """The figure as plotly takes it."""
        return {"data": self.data, "layout": self.layout}

    def _axis(self, axis: str, row: int, settings: dict[str, Any]) -> "Canvas":
        if isinstance(settings.get("title"), str):
            settings["title"] = {"text": settings["title"]}
        merge(self.layout.setdefault(axis if row == 1 else f"{axis}{row}", {}), settings)
        return self


def merge(into: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """Lay settings over a nested dict."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = dict(value) if isinstance(value, Mapping) else value


def scatter(x: Iterable, y: Iterable, **settings: Any) -> Trace:
    """A scatter trace."""
    return {"type": "scatter", "x": x, "y": y, **settings}


def bar(x: Iterable, y: Iterable, **settings: Any) -> Trace:
    """A bar trace."""
    return {"type": "bar", "x": x, "y": y, **settings}
