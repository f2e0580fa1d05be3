"""Bars side by side: several systems over several settings."""

import plotly.graph_objects as go
import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, SYMBOLS, WORDS, Palette, figure


def systems(outcome: Outcome, _: str | None = None) -> go.Figure:
    """λScale Figure 7: seconds by system, model and nodes; bars are the formula, marks what was run or recorded."""
    table = outcome.tables["completion"]
    names = table["system"].unique(maintain_order=True).to_list()
    palette = Palette(names)
    groups = table.unique(["model", "nodes"], maintain_order=True).select("model", "nodes").rows()
    places = [f"{model} on {nodes}" for model, nodes in groups]
    made = figure("One replica to all nodes", "model and number of nodes", "seconds", height=480)
    first = table["backend"][0]
    width = 0.8 / len(names)
    for index, name in enumerate(names):
        offset = (index - (len(names) - 1) / 2) * width
        for (backend,), part in table.filter(pl.col("system") == name).group_by("backend", maintain_order=True):
            seconds = {(row["model"], row["nodes"]): row["complete_s"] for row in part.iter_rows(named=True)}
            x = [index + offset for index, group in enumerate(groups) if group in seconds]
            y = [seconds[group] for group in groups if group in seconds]
            text = [place for place, group in zip(places, groups, strict=True) if group in seconds]
            common = {"x": x, "y": y, "customdata": text, "hovertemplate": "%{customdata}: %{y:.3f} s"}
            if backend == first:
                bar = go.Bar(width=width * 0.94, marker={"color": palette.colour(name), "opacity": 0.75}, **common)
                made.add_trace(bar.update(name=f"{name} ({WORDS[backend]})", legendgroup=name))
            else:
                mark = {"symbol": SYMBOLS[backend], "size": 9, "color": palette.colour(name), "line": {"width": 2}}
                made.add_trace(
                    go.Scatter(
                        mode="markers", marker=mark, name=f"{name} ({WORDS[backend]})", legendgroup=name, **common
                    )
                )
        _recorded(made, outcome, name, groups, offset, palette.colour(name) if outcome.comparable else GREY)
    made.update_xaxes(tickvals=list(range(len(groups))), ticktext=places)
    return made.update_layout(barmode="overlay").update_yaxes(rangemode="tozero")


def _recorded(made: go.Figure, outcome: Outcome, name: str, groups: list[tuple], offset: float, colour: str) -> None:
    x, y, text = [], [], []
    for index, (model, nodes) in enumerate(groups):
        rows = outcome.published.filter(
            (pl.col("series") == f"recorded time, {name}, {model}") & (pl.col("x") == str(nodes))
        )
        for row in rows.iter_rows(named=True):
            x.append(index + offset)
            y.append(row["value"])
            text.append(f"{row['kind']}: {row['source']}")
    if x:
        made.add_trace(
            go.Scatter(
                x=x,
                y=y,
                text=text,
                mode="markers",
                name=f"{name} (recorded by the authors)",
                legendgroup=name,
                marker={"symbol": "diamond-open", "size": 12, "color": colour, "line": {"width": 2}},
                hovertemplate="%{y:.3f} s<br>%{text}",
            )
        )


def paced(outcome: Outcome, _: str | None = None) -> go.Figure:
    """Seconds by schedule: the formula as bars, simulation and real run as marks."""
    table = outcome.tables["times"]
    palette = Palette(table["schedule"].unique(maintain_order=True).to_list())
    made = figure(f"Multicast among {outcome.parameters['nodes']} processes", "", "seconds")
    for (backend,), part in table.group_by("backend", maintain_order=True):
        names, seconds = part["schedule"].to_list(), part["complete_s"].to_list()
        if backend == "analytic":
            colours = [palette.colour(name) for name in names]
            made.add_trace(go.Bar(x=names, y=seconds, name=WORDS[backend], marker={"color": colours, "opacity": 0.75}))
        else:
            mark = {"symbol": SYMBOLS[backend], "size": 11, "color": GREY, "line": {"width": 2}}
            made.add_trace(go.Scatter(x=names, y=seconds, mode="markers", name=WORDS[backend], marker=mark))
    return made.update_yaxes(rangemode="tozero")
