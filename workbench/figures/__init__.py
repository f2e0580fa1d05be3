"""Tables in, plotly figures out: no computing, no state."""

from importlib import import_module
from typing import Any

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.spec import find
from workbench.errors import UnknownName
from workbench.figures.base import LEGEND_WIDTH, settle
from workbench.figures.deferring import load_renderers
from workbench.figures.projector import enlarged


def draw(outcome: Outcome, panel: str | None = None):
    """The plotly `Figure` of a run, or of one of its panels.

    Raises:
        UnknownName: the experiment has no such panel.
    """
    import plotly.graph_objects as go

    load_renderers()
    return go.Figure(sketch(outcome, panel))


def draw_findings(verdicts: pl.DataFrame, agreement: pl.DataFrame):
    """The plotly `Figure` of all that was compared, see `catalogue.findings`."""
    import plotly.graph_objects as go

    from workbench.figures.findings import whole_project

    load_renderers()
    return go.Figure(whole_project(verdicts, agreement))


def sketch(outcome: Outcome, panel: str | None = None, scale: float = 1.0) -> dict[str, Any]:
    """The same figure as a dict of `data` and `layout`, not yet validated by plotly. Errors: as `draw`.

    Parameters:
        scale: how much larger than usual letters, marks and lines are.
    """
    spec = find(outcome.experiment)
    if panel is not None and panel not in spec.panels:
        raise UnknownName(f"panel of {spec.id}", panel, spec.panels)
    module, function = spec.draw.split(".")
    canvas = getattr(import_module(f"workbench.figures.{module}"), function)(outcome, panel)
    made = settle(canvas, round(LEGEND_WIDTH / scale)).to_dict()
    return made if scale == 1.0 else enlarged(made, scale)
