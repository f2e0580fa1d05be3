"""An operator's view of a pool: switches, bytes moved, memory of hosts, slack of batches."""

import polars as pl

from workbench.catalogue.aegaeon import operator
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, DASHES, log_axis
from workbench.figures.canvas import Canvas, scatter
from workbench.figures.panels import stack


def _line(k: int) -> dict:
    return {"color": COLOURS[k % len(COLOURS)], "dash": DASHES[k % len(DASHES)], "width": 2}


def watched(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Four panels of the first backend's first run."""
    tables = {
        name: table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("replication") == 0))
        if len(table)
        else table
        for name, table in outcome.tables.items()
    }

    def shares(table: str, by: str, title: str, percent: str, name: str, least: str):
        def paint(made: Canvas, row: int) -> None:
            for k, value in enumerate(tables[table][by].unique(maintain_order=True).to_list()):
                part = tables[table].filter(pl.col(by) == value)
                x, y = part["seconds"].to_list(), (part["quantile"] * 100).to_list()
                made.add(scatter(x, y, mode="lines", name=name.format(value), line=_line(k)), row=row)
            made.x(row, title=title, rangemode=least).y(row, title=percent, range=[0, 101])

        return paint

    def moved(made: Canvas, row: int) -> None:
        for k, name in enumerate((operator.WEIGHTS, operator.OUT, operator.BACK)):
            y = (tables["moved"][name] / 1e12).to_list()
            made.add(scatter(tables["moved"]["time_s"].to_list(), y, mode="lines", name=name, line=_line(k)), row=row)
        log_axis(made.x(row, title="time, s").y(row, title="TB until then"), "y", row=row)

    def host(made: Canvas, row: int) -> None:
        for k, node in enumerate(tables["host"]["node"].unique(maintain_order=True).to_list()):
            part = tables["host"].filter(pl.col("node") == node)
            x, y = part["time_s"].to_list(), (part["share"] * 100).to_list()
            made.add(scatter(x, y, mode="lines", name=f"host {node}", line=_line(k)), row=row)
        made.x(row, title="time, s").y(row, title="% of its KV memory", rangemode="tozero")

    painters = {
        "switches": (
            "switches by bytes of the model",
            shares("switches", "size", "switch, s", "% of switches", "{}", "tozero"),
        ),
        "moved": ("what has moved", moved),
        "host": ("KV caches in the hosts' memory", host),
        "slack": (
            "slack: the least that a reader of a batch has in hand",
            shares("slack", "moment", "seconds in hand (below 0: late)", "% of turns", "when {}", "normal"),
        ),
    }
    return stack("A pool as its operator sees it", painters, panel)
