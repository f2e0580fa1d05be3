"""A small cluster whose new instances help while they load: who runs what, and when batches are done."""

import polars as pl

from workbench.catalogue.blitzscale.live_cluster import BETWEEN, OLD, TAIL
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, GREY, SYMBOLS, WORDS
from workbench.figures.canvas import Canvas, scatter
from workbench.figures.live import FEW, batch_bar
from workbench.figures.panels import stack


def cluster(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Slots of every instance, of a real run where there is one, and finish times of batches by chain."""
    parameters, tables = outcome.parameters, outcome.tables
    backends = tables["slots"]["backend"].unique(maintain_order=True).to_list()
    shown = backends[-1]

    def chart(made: Canvas, row: int) -> None:
        table = tables["slots"].filter(pl.col("backend") == shown)
        names = [
            f"chain {chain}, {kind}" for chain in range(1, parameters["chains"] + 1) for kind in (OLD, BETWEEN, TAIL)
        ]
        used = set(table.select(pl.format("chain {}, {}", "chain", "instance")).to_series())
        for (batch,), part in table.group_by("batch", maintain_order=True):
            places = part.select(pl.format("chain {}, {}", "chain", "instance")).to_series().to_list()
            numbered = parameters["batches"] <= FEW
            made.add(batch_bar(part, places, batch, numbered, "%{y}, %{fullData.name}"), row=row)
        for value in sorted(set(_complete(outcome, shown))):
            made.line(x=value, row=row, color=GREY, dash="dot", width=1.5)
        made.x(row, title="layer times (dotted: a new instance is complete)", rangemode="tozero")
        order = [name for name in reversed(names) if name in used]
        made.y(row, ticklabelstandoff=6, categoryarray=order, categoryorder="array").set(barmode="overlay")

    def done(made: Canvas, row: int) -> None:
        for backend in backends:
            part = tables["done"].filter(pl.col("backend") == backend)
            for (chain,), line in part.group_by("chain", maintain_order=True):
                formula = backend == "analytic"
                if formula and chain > 1:
                    continue  # all chains are alike there
                made.add(
                    scatter(
                        line["batch"].to_list(),
                        line["finish_layers"].to_list(),
                        name=f"{'every chain' if formula else f'chain {chain}'} ({WORDS[backend]})",
                        mode="lines+markers" if formula else "markers",
                        line={"color": COLOURS[0], "width": 2},
                        marker={
                            "color": COLOURS[0 if formula else chain % len(COLOURS)], "symbol": SYMBOLS[backend],
                            "size": 9, "line": {"width": 2},
                        },
                    ),
                    row=row,
                )  # fmt: skip
        numbers = tables["done"]["batch"].unique().sort().to_list()
        made.x(row, title="batch (those done before other instances join)")
        if len(numbers) <= FEW:
            made.x(row, tickvals=numbers)
        made.y(row, title="done after, layer times", rangemode="tozero")

    kinds = 2 + (parameters["targets"] > 1)
    painters = {
        "slots": (f"who runs what ({WORDS[shown]}; numbers: batches)", chart),
        "done": ("batches done", done),
    }
    about = f"One source, {parameters['chains']} chains of {parameters['targets']}, {parameters['layers']} layers"
    return stack(about, painters, panel, heights=(max(1.0, 0.22 * kinds * parameters["chains"]), 1.0))


def _complete(outcome: Outcome, backend: str) -> list[float]:
    return outcome.tables["complete"].filter(pl.col("backend") == backend)["complete_layers"].to_list()
