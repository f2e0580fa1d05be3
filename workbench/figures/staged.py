"""Batches in an execution pipeline: a bar for each block on its node."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, WORDS, pattern
from workbench.figures.canvas import Canvas, bar
from workbench.figures.panels import stack

MOST_BARS = 3000


def pipeline(outcome: Outcome, panel: str | None = None) -> Canvas:
    """λScale Figure 6: which node works on which batch when, and for what share nodes are idle."""
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
        made.x(row, title="ms").set(barmode="overlay")

    def idle(made: Canvas, row: int) -> None:
        table = outcome.tables["idle"]
        for place, ((pace, backend), part) in enumerate(table.group_by("pace", "backend", maintain_order=True)):
            made.add(
                bar(
                    [f"node {node + 1}" for node in part["node"]],
                    (part["idle_share"].abs() * 100).to_list(),
                    name=f"{pace} ({WORDS[backend]})",
                    offsetgroup=str(place),
                    marker={
                        "color": COLOURS[0 if pace == "free" else 1], "pattern": {"shape": pattern(backend)},
                    },
                ),
                row=row,
            )  # fmt: skip
        made.y(row, title="idle in the steady state, %", range=[0, 100])

    painters = {"chart": (f"{parameters['pace']}, blocks with their dispatch", chart), "idle": ("idle nodes", idle)}
    return stack(f"{parameters['batches']} batches in a pipeline of {parameters['nodes']} nodes", painters, panel)
