"""Figures of several panels that can also be drawn one at a time."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap

from workbench.errors import UserError
from workbench.figures.base import TEMPLATE
from workbench.figures.canvas import Canvas

EMPTY = "shown once it is simulated"
"""What stands in a panel in which the backends that ran draw nothing."""

Painter = Callable[[Canvas, int], object]
"""Draws into a row of a figure: (figure, row) -> anything."""

ROW, GAP = 255, 105
"""Pixels of a panel, and between panels for tick labels, axis title and the next panel's title."""

LETTERS = 64
"""So many letters of a panel's title fit a line on a page 900 pixels wide."""


def stack(
    title: str, painters: Mapping[str, tuple[str, Painter]], panel: str | None, heights: Sequence[float] | None = None
) -> Canvas:
    """Panels one above the other, or the named one alone.

    Parameters:
        title: of the whole figure.
        painters: panel name -> (panel title, painter).
        panel: the panel to draw alone; all by default.
        heights: heights of the panels, 1 being usual; all usual by default.

    Raises:
        UserError: the run has nothing for the named panel.
    """
    if panel and panel not in painters:
        raise UserError(f"This run has nothing for panel {panel!r}, only for {', '.join(painters)}; add a backend.")
    chosen = [panel] if panel else list(painters)
    shares = [1.0] * len(chosen) if panel or heights is None else list(heights)
    pixels = [ROW * share * (1.25 if len(chosen) == 1 else 1) for share in shares]
    whole = sum(pixels) + GAP * (len(chosen) - 1)
    made = Canvas({"template": TEMPLATE, "title": {"text": title, "font": {"size": 15}}, "height": whole + 126})
    top = 1.0
    for row, (name, height) in enumerate(zip(chosen, pixels, strict=True), start=1):
        bottom = max(0.0, top - height / whole)
        number = "" if row == 1 else str(row)
        made.x(row, anchor=f"y{number}", domain=[0, 1]).y(row, anchor=f"x{number}", domain=[bottom, top])
        place = {"x": 0.5, "y": top, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom"}
        made.note("<br>".join(wrap(painters[name][0], LETTERS)), font={"size": 13}, **place)
        before = len(made.data), len(made.layout["annotations"])
        painters[name][1](made, row)
        if before == (len(made.data), len(made.layout["annotations"])):
            made.note(EMPTY, xref="paper", yref="paper", x=0.5, y=(top + bottom) / 2)
        top = bottom - GAP / whole
    return made
