"""BlitzScale's transfer experiments: chains, stars and sharded lanes."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, GREY, WORDS, Palette, curve, figure, log_axis, pattern, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

LAST = "time until the last node holds the weights"
PLACES = {
    "chain, 1 hop": 1,
    "chain, 8 hops, 2 MiB units": 8,
    "chain, 8 hops, whole layers (436 MB)": 8,
    "star, 8 targets": 8,
}


def chain_and_star(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 13: completion of each target by plan, and of two unequal targets in both orders."""
    table, order, parameters = outcome.tables["completion"], outcome.tables["order"], outcome.parameters
    plans = table["plan"].unique(maintain_order=True).to_list()
    palette = Palette(plans)

    def targets(made: Canvas, row: int) -> None:
        for plan in plans:
            part = table.filter(pl.col("plan") == plan)
            finest = part.filter(pl.col("units") == pl.col("units").max().over("backend"))
            made.add(*curve(finest, "target", "complete_s", plan, palette), row=row)
        made.add(*published_marks(outcome, palette, series={LAST: plans[0]}, x=PLACES), row=row)
        made.x(row, title="target (place in the plan)").y(row, title="seconds")
        log_axis(made, "y", row=row)

    def orders(made: Canvas, row: int) -> None:
        finest = order.filter(pl.col("units") == pl.col("units").max().over("backend"))
        for (backend, name), part in finest.group_by("backend", "node", maintain_order=True):
            colour = COLOURS[3 if name == "faster link" else 4]
            made.add(
                bar(
                    part["order"].to_list(),
                    part["complete_s"].to_list(),
                    name=f"node with the {name} ({WORDS[backend]})",
                    marker={"color": colour, "pattern": {"shape": pattern(backend)}},
                ),
                row=row,
            )
        made.y(row, title="seconds without weights", rangemode="tozero")

    painters = {
        "targets": (f"{parameters['model']}, {parameters['targets']} targets", targets),
        "order": (f"two targets, one with a link {parameters['faster']:g} times as fast", orders),
    }
    return stack("Serial chain and star", painters, panel, heights=(1.2, 1))


def lanes(outcome: Outcome, _: str | None = None) -> Canvas:
    """BlitzScale Figure 14: seconds against the number of lanes."""
    table = outcome.tables["lanes"]
    plans = table["plan"].unique(maintain_order=True).to_list()
    palette = Palette(plans)
    made = figure(f"{outcome.parameters['model']} from host to host", "lanes (accelerator pairs)", "seconds")
    for plan in plans:
        made.add(*curve(table.filter(pl.col("plan") == plan), "lanes", "complete_s", plan, palette))
    one = table.filter((pl.col("lanes") == 1) & (pl.col("plan") == plans[0]))["complete_s"][0]
    counts = table["lanes"].unique().sort().to_list()
    ideal = {"color": GREY, "dash": "dot", "width": 1.5}
    made.add(scatter(counts, [one / g for g in counts], mode="lines", name="one lane's time over g", line=ideal))
    made.add(*published_marks(outcome, palette))
    for row in outcome.published.filter(pl.col("kind") != "user").iter_rows(named=True):
        made.add(
            scatter(
                [float(row["x"].split()[0])],
                [row["value"] * one],
                mode="markers",
                name="published: 1/g",
                marker={"symbol": "diamond-open", "size": 12, "color": GREY, "line": {"width": 2}},
                hovertemplate=f"{row['source']}<extra>published</extra>",
            )
        )
    return made.x(tickvals=counts).y(rangemode="tozero")
