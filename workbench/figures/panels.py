"""Figures of several panels that can also be drawn one at a time."""

from collections.abc import Callable, Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import TEMPLATE

Painter = Callable[[go.Figure, int], None]
"""Draws into a row of a figure: (figure, row) -> None."""


def stack(
    title: str, painters: Mapping[str, tuple[str, Painter]], panel: str | None, heights: Sequence[float] | None = None
) -> go.Figure:
    """Panels one above the other, or the named one alone.

    Parameters:
        title: of the whole figure.
        painters: panel name -> (panel title, painter).
        panel: the panel to draw alone; all by default.
        heights: relative heights; equal by default.
    """
    chosen = [panel] if panel else list(painters)
    shares = [1.0] * len(chosen) if panel or heights is None else list(heights)
    made = make_subplots(
        rows=len(chosen),
        cols=1,
        subplot_titles=[painters[name][0] for name in chosen],
        row_heights=shares,
        vertical_spacing=min(0.22, 110 / (330 * len(chosen))) if len(chosen) > 1 else 0,
    )
    made.update_layout(template=TEMPLATE, title={"text": title, "font": {"size": 15}}, height=110 + 330 * len(chosen))
    made.update_annotations(font_size=13)
    for row, name in enumerate(chosen, start=1):
        painters[name][1](made, row)
    return made
