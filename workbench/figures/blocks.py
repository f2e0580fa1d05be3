"""Which node holds which block when: heat maps of one schedule."""

import textwrap

import numpy as np
import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, GREY, INK, SYMBOLS, WORDS, Palette, pattern, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

LATER = "rgba(128,128,128,.13)"


def landing(outcome: Outcome, panel: str | None = None) -> Canvas:
    """λScale Figure 5: the step in which each block lands at each node, and the milestones of all orders."""
    parameters = outcome.parameters

    def blocks(made: Canvas, row: int) -> None:
        table = outcome.tables["arrivals"]
        table = table.filter(pl.col("backend") == table["backend"][0]).sort("group", "node", "block")
        names = table.unique("node", maintain_order=True)
        copies = names["group"].n_unique()
        labels = [
            f"group {group + 1}: node {node}" + (" (source)" if node < copies else "")
            for node, group in zip(names["node"], names["group"], strict=True)
        ]
        steps = table["step"].to_numpy().reshape(len(names), -1)
        landing_grid(made, row, steps, labels, parameters["step"])

    def milestones(made: Canvas, row: int) -> None:
        table = outcome.tables["milestones"]
        first = table["backend"][0]
        for index, order in enumerate(table["order"].unique(maintain_order=True)):
            for (backend,), part in table.filter(pl.col("order") == order).group_by("backend", maintain_order=True):
                steps = part["steps"].to_list()
                made.add(
                    bar(
                        part["milestone"].to_list(),
                        steps,
                        name=f"{order} ({WORDS[backend]})",
                        marker={"color": COLOURS[index], "pattern": {"shape": pattern(backend)}},
                        text=steps if backend == first else [],  # the others' bars are as high, and side by side
                        textposition="outside",
                        cliponaxis=False,
                    ),
                    row=row,
                )
        made.add(*published_marks(outcome, Palette()), row=row)
        labels = table["milestone"].unique(maintain_order=True).to_list()
        made.x(row, tickvals=labels, ticktext=[_short_lines(label) for label in labels], tickangle=0)
        made.y(row, title="steps", rangemode="tozero").set(barmode="group")

    def pipelines(made: Canvas, row: int) -> None:
        table = outcome.tables["pipelines"]
        table = table.filter(pl.col("backend") == table["backend"][0])
        for index, ((plan,), part) in enumerate(table.group_by("plan", maintain_order=True)):
            made.add(
                scatter(
                    part["steps"].to_list(),
                    part["length"].to_list(),
                    mode="markers",
                    name=plan,
                    marker={
                        "color": COLOURS[index],
                        "symbol": ("circle", "square-open")[index],
                        "size": 11 + 5 * index,
                    },
                    text=[f"nodes {names}" for names in part["nodes"]],
                    hovertemplate="%{text}: after step %{x}<extra>%{fullData.name}</extra>",
                ),
                row=row,
            )
        made.line(x=parameters["step"], row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="step after which a pipeline can serve (dotted: drawn)", rangemode="tozero")
        made.y(row, title="nodes in it", rangemode="tozero")

    copies = outcome.tables["arrivals"]["group"].n_unique()
    size = f"{copies} to {parameters['nodes']} nodes, {parameters['blocks']} blocks"
    painters = {
        "blocks": (f"held after step {parameters['step']} (colour; grey: later), {parameters['order']} order", blocks),
        "milestones": ("steps until", milestones),
        "pipelines": (f"execution pipelines, {parameters['order']} order", pipelines),
    }
    return stack(f"Scaling from {size}", painters, panel)


def schedule(outcome: Outcome, panel: str | None = None) -> Canvas:
    """One schedule: who holds what after a step, busy links per step, and when each node is complete."""
    parameters = outcome.parameters

    def blocks(made: Canvas, row: int) -> None:
        table = outcome.tables["arrivals"]
        table = table.filter(pl.col("backend") == table["backend"][0]).sort("node", "block")
        steps = table["step"].to_numpy().reshape(parameters["nodes"], -1)
        landing_grid(made, row, steps, [f"node {node}" for node in range(parameters["nodes"])], parameters["step"])

    def links(made: Canvas, row: int) -> None:
        for (backend,), part in outcome.tables["links"].group_by("backend", maintain_order=True):
            part = part.sort("step")
            made.add(
                scatter(
                    part["step"].to_list(),
                    part["busy_links"].to_list(),
                    mode="lines+markers",
                    name=f"busy links ({WORDS[backend]})",
                    line={"color": COLOURS[0], "shape": "hvh"},
                    marker={"symbol": SYMBOLS[backend], "color": COLOURS[0], "size": 7},
                ),
                row=row,
            )
        made.line(y=parameters["nodes"] - 1, row=row, color=GREY, dash="dot")
        made.x(row, title="step").y(row, title="busy links", rangemode="tozero")

    def completion(made: Canvas, row: int) -> None:
        table = outcome.tables["completion"]
        table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("node") > 0))
        kinds = ((False, "one node a vertex", COLOURS[0]), (True, "two nodes share a vertex", COLOURS[1]))
        for doubled, name, colour in kinds:
            part = table.filter(pl.col("doubled") == doubled)
            if len(part):
                x, y = part["node"].to_list(), part["step"].to_list()
                made.add(bar(x, y, name=name, marker={"color": colour}), row=row)
        made.add(*published_marks(outcome, Palette()), row=row)
        made.x(row, title="node").y(row, title="complete after step")

    size = f"{parameters['blocks']} blocks to {parameters['nodes']} nodes"
    painters = {
        "blocks": (f"held after step {parameters['step']} (colour; grey: later)", blocks),
        "links": ("busy links (dotted: every node but one receives)", links),
        "completion": ("when each node is complete", completion),
    }
    return stack(f"{parameters['schedule'].capitalize()}: {size}", painters, panel, heights=(1.3, 1, 1))


def _short_lines(label: str) -> str:
    """A label broken into lines of about a dozen letters, so that it stands upright under its bars."""
    return "<br>".join(textwrap.wrap(label, 13))


def landing_grid(
    made: Canvas, row: int, steps: np.ndarray, labels: list[str], shown: float, unit: str = "step"
) -> None:
    """A heat map of arrival steps or seconds (nodes x blocks); cells that arrive after `shown` are pale.

    Each of its two layers writes in its own cells only: in grey on the pale ones, which the page shines through, in
    black or white, whichever stands out (plotly's own choice), on the coloured ones.
    """
    there = steps <= shown + 1e-9
    text = np.array([[f"{value:g}" for value in line] for line in steps]).reshape(steps.shape)
    small = steps.shape[0] <= 20 and steps.shape[1] <= 32
    common = {
        "type": "heatmap",
        "x": [f"b{block}" for block in range(steps.shape[1])],
        "y": labels,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "hovertemplate": f"%{{y}}, %{{x}}: {unit} %{{text}}<extra></extra>",
        "texttemplate": "%{text}" if small else "",
    }
    pale = {
        # None, not NaN: a NaN inside a nested list is no valid JSON for a live figure.
        "z": _where(~there, np.zeros(steps.shape), None),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, LATER], [1, LATER]],
        "showscale": False,
        "text": _where(~there, text, ""),
        "textfont": {"color": INK},
    }
    colours = {
        "z": _where(there, steps, None),
        "zmin": 0,
        "zmax": float(steps.max()),
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": unit}, "len": 0.45, "y": 1.0, "yanchor": "top", "tickfont": {"color": INK}},
        "text": _where(there, text, ""),
    }
    made.add({**common, **pale}, {**common, **colours}, row=row)
    made.y(row, autorange="reversed", showgrid=False).x(row, title="block", showgrid=False)


def _where(chosen: np.ndarray, values: np.ndarray, otherwise: str | None) -> list[list]:
    """The values of the chosen cells, and something else in the others, as nested lists of plain Python values."""
    lines = zip(chosen.tolist(), values.tolist(), strict=True)
    return [[value if yes else otherwise for yes, value in zip(*line, strict=True)] for line in lines]
