"""Batches in an execution pipeline: a bar for each block on its node."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS
from workbench.figures.canvas import Canvas, bar
from workbench.figures.panels import stack

MOST_BARS = 3000


def pipeline(outcome: Outcome, panel: str | None = None) -> Canvas:
    """λScale Figure 6: which node works on which batch when, and what nodes do with their time."""
    parameters, passes = outcome.parameters, outcome.tables["passes"]
    first = passes["backend"][0]
    drawn = passes.filter((pl.col("backend") == first) & (pl.col("pace") == parameters["pace"])).sort("begin_s")

    def chart(made: Canvas, row: int) -> None:
        table = drawn.head(MOST_BARS)
        for (batch,), part in table.sort("batch", "begin_s").group_by("batch", maintain_order=True):
            texts = [f"batch {batch + 1}, token {token + 1}, stage {stage + 1}" for token, stage in
                     part.select("token", "stage").rows()]  # fmt: skip
            made.add(
                bar(
                    ((part["end_s"] - part["begin_s"]) * 1e3).to_list(),
                    part["node"].to_list(),
                    base=(part["begin_s"] * 1e3).to_list(),
                    orientation="h",
                    name=f"batch {batch + 1}",
                    width=0.8,
                    marker={"color": COLOURS[batch % len(COLOURS)], "line": {"width": 0.5, "color": "white"}},
                    text=texts,
                    textposition="none",
                    hovertemplate="node %{y}: %{text}<br>from %{base:.2f} ms for %{x:.2f} ms<extra></extra>",
                ),
                row=row,
            )
        names = sorted(drawn["node"].unique())
        made.y(row, title="", tickvals=names, ticktext=[f"node {name + 1}" for name in names], autorange="reversed")
        made.x(row, title="ms").set(barmode="stack")

    def shares(made: Canvas, row: int) -> None:
        table = outcome.tables["idle"]
        table = table.filter((pl.col("backend") == first) & (pl.col("pace") == parameters["pace"]))
        summary = outcome.tables["summary"].filter(
            (pl.col("backend") == first) & (pl.col("pace") == parameters["pace"])
        )
        busy = 1 - table["idle_share"]
        dispatch = summary["overhead_share"][0]
        kinds = (
            ("computing", busy * (1 - dispatch), 7),
            ("dispatch", busy * dispatch, 6),
            ("idle", table["idle_share"], 4),
        )
        for name, values, colour in kinds:
            x = [f"node {node + 1}" for node in table["node"]]
            y = [100 * abs(value) for value in values]
            made.add(bar(x, y, name=name, width=0.6, marker={"color": COLOURS[colour]}), row=row)
        made.set(barmode="stack", legend={"traceorder": "normal"})
        made.y(row, title="% of the steady state", range=[0, 100])

    painters = {
        "chart": (f"{parameters['pace']}, blocks with their dispatch", chart),
        "idle": (f"{parameters['pace']}, what nodes do once the pipeline is full", shares),
    }
    return stack(f"{parameters['batches']} batches in a pipeline of {parameters['nodes']} nodes", painters, panel)
