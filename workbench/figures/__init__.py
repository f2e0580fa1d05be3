"""Tables in, plotly figures out: no computing, no state."""

from importlib import import_module

import plotly.graph_objects as go

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.spec import find
from workbench.errors import UnknownName
from workbench.figures.base import settle


def draw(outcome: Outcome, panel: str | None = None) -> go.Figure:
    """The figure of a run, or one of its panels.

    Raises:
        UnknownName: the experiment has no such panel.
    """
    spec = find(outcome.experiment)
    if panel is not None and panel not in spec.panels:
        raise UnknownName(f"panel of {spec.id}", panel, spec.panels)
    module, function = spec.draw.split(".")
    return settle(getattr(import_module(f"workbench.figures.{module}"), function)(outcome, panel))
