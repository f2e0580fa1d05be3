"""Which node holds which block when: heat maps of one schedule."""

import numpy as np
import plotly.graph_objects as go
import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, GREY, INK, SYMBOLS, WORDS, Palette, published_marks
from workbench.figures.panels import stack

LATER = "rgba(128,128,128,.13)"


def landing(outcome: Outcome, panel: str | None = None) -> go.Figure:
    """λScale Figure 5: the step in which each block lands at each node, and the milestones of all orders."""
    parameters = outcome.parameters

    def blocks(made: go.Figure, row: int) -> None:
        table = outcome.tables["arrivals"]
        table = table.filter(pl.col("backend") == table["backend"][0]).sort("group", "node", "block")
        names = table.unique("node", maintain_order=True)
        labels = [
            f"group {group + 1}: node {node}" + (" (source)" if node < parameters["sources"] else "")
            for node, group in zip(names["node"], names["group"], strict=True)
        ]
        steps = table["step"].to_numpy().reshape(len(names), -1)
        landing_grid(made, row, steps, labels, parameters["step"])

    def milestones(made: go.Figure, row: int) -> None:
        table = outcome.tables["milestones"]
        for index, order in enumerate(table["order"].unique(maintain_order=True)):
            for backend, part in table.filter(pl.col("order") == order).group_by("backend", maintain_order=True):
                made.add_trace(
                    go.Bar(
                        x=part["milestone"].to_list(),
                        y=part["steps"].to_list(),
                        name=f"{order} ({WORDS[backend[0]]})",
                        marker={"color": COLOURS[index], "pattern": {"shape": "" if backend[0] == "analytic" else "/"}},
                        text=part["steps"].to_list(),
                        textposition="outside",
                        cliponaxis=False,
                    ),
                    row=row,
                    col=1,
                )
        for trace in published_marks(outcome, Palette()):
            made.add_trace(trace, row=row, col=1)
        made.update_yaxes(title_text="steps", rangemode="tozero", row=row, col=1)
        made.update_layout(barmode="group")

    size = f"{parameters['sources']} to {parameters['nodes']} nodes, {parameters['blocks']} blocks"
    painters = {
        "blocks": (f"held after step {parameters['step']} (colour; grey: later), {parameters['order']} order", blocks),
        "milestones": ("steps until", milestones),
    }
    return stack(f"Scaling from {size}", painters, panel)


def landing_grid(made: go.Figure, row: int, steps: np.ndarray, labels: list[str], shown: int) -> None:
    """A heat map of arrival steps (nodes x blocks); cells that arrive after step `shown` are pale."""
    # None, not NaN: a NaN inside a nested list is no valid JSON for a live figure.
    held = [[float(value) if value <= shown + 1e-9 else None for value in line] for line in steps]
    text = np.array([[f"{value:g}" for value in line] for line in steps])
    small = steps.shape[0] <= 20 and steps.shape[1] <= 32
    x = [f"b{block}" for block in range(steps.shape[1])]
    hover = "%{y}, %{x}: step %{text}<extra></extra>"
    common = {"x": x, "y": labels, "xgap": 1, "ygap": 1, "text": text, "hovertemplate": hover}
    made.add_trace(
        go.Heatmap(z=np.zeros_like(steps), colorscale=[[0, LATER], [1, LATER]], showscale=False, **common),
        row=row,
        col=1,
    )
    made.add_trace(
        go.Heatmap(
            z=held,
            zmin=0,
            zmax=float(steps.max()),
            colorscale="Viridis",
            colorbar={"title": {"text": "step"}, "len": 0.45, "y": 1.0, "yanchor": "top", "tickfont": {"color": INK}},
            texttemplate="%{text}" if small else "",
            **common,
        ),
        row=row,
        col=1,
    )
    made.update_yaxes(autorange="reversed", showgrid=False, row=row, col=1)
    made.update_xaxes(title_text="block", showgrid=False, side="bottom", row=row, col=1)


def schedule(outcome: Outcome, panel: str | None = None) -> go.Figure:
    """One schedule: who holds what after a step, busy links per step, and when each node is complete."""
    parameters = outcome.parameters

    def blocks(made: go.Figure, row: int) -> None:
        table = outcome.tables["arrivals"]
        table = table.filter(pl.col("backend") == table["backend"][0]).sort("node", "block")
        steps = table["step"].to_numpy().reshape(parameters["nodes"], -1)
        labels = [f"node {node}" for node in range(parameters["nodes"])]
        landing_grid(made, row, steps, labels, parameters["step"])

    def links(made: go.Figure, row: int) -> None:
        table = outcome.tables["links"]
        for (backend,), part in table.group_by("backend", maintain_order=True):
            part = part.sort("step")
            made.add_trace(
                go.Scatter(
                    x=part["step"].to_list(),
                    y=part["busy_links"].to_list(),
                    mode="lines+markers",
                    name=f"busy links ({WORDS[backend]})",
                    line={"color": COLOURS[0], "shape": "hvh"},
                    marker={"symbol": SYMBOLS[backend], "color": COLOURS[0], "size": 7},
                ),
                row=row,
                col=1,
            )
        made.add_hline(y=parameters["nodes"] - 1, line={"color": GREY, "dash": "dot"}, row=row, col=1)
        made.update_xaxes(title_text="step", row=row, col=1)
        made.update_yaxes(title_text="busy links", rangemode="tozero", row=row, col=1)

    def completion(made: go.Figure, row: int) -> None:
        table = outcome.tables["completion"]
        table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("node") > 0))
        kinds = ((False, "one node a vertex", COLOURS[0]), (True, "two nodes share a vertex", COLOURS[1]))
        for doubled, name, colour in kinds:
            part = table.filter(pl.col("doubled") == doubled)
            if len(part):
                made.add_trace(
                    go.Bar(x=part["node"].to_list(), y=part["step"].to_list(), name=name, marker={"color": colour}),
                    row=row,
                    col=1,
                )
        for trace in published_marks(outcome, Palette()):
            made.add_trace(trace, row=row, col=1)
        made.update_xaxes(title_text="node", row=row, col=1)
        made.update_yaxes(title_text="complete after step", row=row, col=1)

    painters = {
        "blocks": (f"held after step {parameters['step']} (colour; grey: later)", blocks),
        "links": ("busy links (dotted: every node but one receives)", links),
        "completion": ("when each node is complete", completion),
    }
    size = f"{parameters['blocks']} blocks to {parameters['nodes']} nodes"
    return stack(f"{parameters['schedule'].capitalize()}: {size}", painters, panel, heights=(1.3, 1, 1))
