"""Bars side by side: several systems over several settings."""

import polars as pl

from workbench.catalogue.lambdascale.fig7 import recorded_series
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, SYMBOLS, WORDS, Palette, figure, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack


def systems(outcome: Outcome, panel: str | None = None) -> Canvas:
    """λScale Figure 7: seconds by system, model and nodes; bars are the formula, marks what was run or recorded."""
    table = outcome.tables["completion"]
    names = table["system"].unique(maintain_order=True).to_list()
    palette = Palette(names)

    def painter(models: tuple[str, ...]):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("model").is_in(list(models)))
            groups = part.unique(["model", "nodes"], maintain_order=True).select("model", "nodes").rows()
            width = 0.84 / len(names)
            for index, name in enumerate(names):
                places = {group: place + (index - (len(names) - 1) / 2) * width for place, group in enumerate(groups)}
                one = part.filter(pl.col("system") == name)
                _marks(made, row, one, table["backend"][0], name, places, palette.colour(name), width)
                _recorded(made, row, outcome, name, places, palette.colour(name) if outcome.comparable else GREY)
            ticks = [f"{model}<br>on {nodes}" for model, nodes in groups]
            made.x(row, tickvals=list(range(len(groups))), ticktext=ticks, tickangle=0)
            made.y(row, title="seconds", rangemode="tozero")

        return paint

    painters = {"small": ("7B and 13B", painter(("7B", "13B"))), "large": ("70B", painter(("70B",)))}
    made = stack("One replica to all nodes (model on number of nodes)", painters, panel)
    shown: set[str] = set()
    for trace in made.data:  # one legend entry a kind of mark, whichever panel it appears in first
        trace["showlegend"] = trace["name"] not in shown
        shown.add(trace["name"])
    return made.set(barmode="overlay")


def _marks(
    made: Canvas,
    row: int,
    table: pl.DataFrame,
    first: str,
    name: str,
    places: dict[tuple, float],
    colour: str,
    width: float,
) -> None:
    for (backend,), part in table.group_by("backend", maintain_order=True):
        rows = part.rows(named=True)
        x, y = [places[one["model"], one["nodes"]] for one in rows], [one["complete_s"] for one in rows]
        common = {
            "customdata": [f"{one['model']} on {one['nodes']}" for one in rows],
            "hovertemplate": "%{customdata}: %{y:.3f} s",
            "name": f"{name} ({WORDS[backend]})",
            "legendgroup": name,
        }
        if backend == first:
            made.add(bar(x, y, width=width * 0.94, marker={"color": colour, "opacity": 0.75}, **common), row=row)
        else:
            mark = {"symbol": SYMBOLS[backend], "size": 9, "color": colour, "line": {"width": 2}}
            made.add(scatter(x, y, mode="markers", marker=mark, **common), row=row)


def _recorded(made: Canvas, row: int, outcome: Outcome, name: str, places: dict[tuple, float], colour: str) -> None:
    points = {
        (one["series"], one["x"]): one
        for one in outcome.published.iter_rows(named=True)
        if one["series"].startswith(recorded_series(name, ""))
    }
    keys = [(place, (recorded_series(name, model), str(nodes))) for (model, nodes), place in places.items()]
    found = [(place, points[key]) for place, key in keys if key in points]
    if found:
        made.add(
            scatter(
                [place for place, _ in found],
                [one["value"] for _, one in found],
                text=[f"{one['kind']}: {one['source']}" for _, one in found],
                mode="markers",
                name=f"{name} (recorded by the authors)",
                legendgroup=name,
                marker={"symbol": "diamond-open", "size": 11, "color": colour, "line": {"width": 2}},
                hovertemplate="%{y:.3f} s<br>%{text}",
            ),
            row=row,
        )


def paced(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds by schedule: the formula as bars, simulation and real run as marks."""
    table = outcome.tables["times"]
    palette = Palette(table["schedule"].unique(maintain_order=True).to_list())
    made = figure(f"Multicast among {outcome.parameters['nodes']} processes", "", "seconds")
    for (backend,), part in table.group_by("backend", maintain_order=True):
        names, seconds = part["schedule"].to_list(), part["complete_s"].to_list()
        if backend == "analytic":
            colours = [palette.colour(name) for name in names]
            made.add(bar(names, seconds, name=WORDS[backend], marker={"color": colours, "opacity": 0.75}))
        else:
            mark = {"symbol": SYMBOLS[backend], "size": 11, "color": GREY, "line": {"width": 2}}
            made.add(scatter(names, seconds, mode="markers", name=WORDS[backend], marker=mark))
    made.add(*published_marks(outcome, palette))
    return made.y(rangemode="tozero")
