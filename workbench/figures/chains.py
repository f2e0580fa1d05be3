"""BlitzScale's transfer experiments: chains, stars and sharded lanes."""

import polars as pl

from workbench.catalogue.blitzscale.fig13 import LAST
from workbench.catalogue.blitzscale.fig14 import SHARE
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.figures import pieces
from workbench.figures.base import GREY, WORDS, Palette, curve, log_axis, pattern, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

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
            made.add(*pieces.curves(part, "target", "complete_s", "units", plan, palette), row=row)
        made.add(*published_marks(outcome, palette, series={LAST: plans[0]}, x=PLACES), row=row)
        made.x(row, title="targets that hold the weights").y(row, title="seconds")
        log_axis(made, "y", row=row)

    def orders(made: Canvas, row: int) -> None:
        found = pieces.counts(order, "units")
        others = pieces.beside(found)
        nodes = Palette(order["node"].unique(maintain_order=True).to_list())
        kinds = [*found.items(), *((pieces.FORMULA, count) for count in others)]
        for backend, count in kinds:
            same = order.filter((pl.col("backend") == backend) & (pl.col("units") == count))
            units = f", {count:,} units" if len(set(found.values())) > 1 else ""
            for (name,), part in same.group_by("node", maintain_order=True):
                look = {"color": nodes.colour(name), "pattern": {"shape": pattern(backend)}}
                if (backend, count) not in found.items():
                    look["opacity"] = 0.5
                made.add(
                    bar(
                        part["order"].to_list(),
                        part["complete_s"].to_list(),
                        name=f"{name}{units} ({WORDS[backend]})",
                        marker=look,
                    ),
                    row=row,
                )
        made.y(row, title="seconds without weights", rangemode="tozero")

    painters = {
        "targets": (f"{name_of(parameters['model'])}, {parameters['targets']} targets", targets),
        "order": ("unequal links: seconds of each node by its place in the chain", orders),
    }
    return stack("Serial chain, star and tree", painters, panel, heights=(1.2, 1))


def lanes(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 14: seconds, and the share of one lane's, against the number of lanes."""
    table = outcome.tables["lanes"]
    plans = table["plan"].unique(maintain_order=True).to_list()
    counts = table["lanes"].unique().sort().to_list()
    palette = Palette(plans)

    def seconds(made: Canvas, row: int) -> None:
        for plan in plans:
            made.add(*curve(table.filter(pl.col("plan") == plan), "lanes", "complete_s", plan, palette), row=row)
        made.x(row, tickvals=counts, title="lanes (accelerator pairs)").y(row, title="seconds", rangemode="tozero")

    def share(made: Canvas, row: int) -> None:
        for plan in plans:
            traces = curve(table.filter(pl.col("plan") == plan), "lanes", "share", plan, palette)
            made.add(*({**trace, "showlegend": panel == "share"} for trace in traces), row=row)
        ideal = {"color": GREY, "dash": "dot", "width": 1.5}
        made.add(scatter(counts, [1 / g for g in counts], mode="lines", name="1/g", line=ideal), row=row)
        places = {f"{g} GPUs": g for g in counts}
        made.add(*published_marks(outcome, palette, series={SHARE: plans[-1]}, x=places), row=row)
        made.x(row, tickvals=counts, title="lanes (accelerator pairs)")
        made.y(row, title="share of one lane's time", rangemode="tozero")

    painters = {"seconds": ("seconds", seconds), "share": ("over one lane's time", share)}
    return stack(f"{name_of(outcome.parameters['model'])} from host to host", painters, panel)
