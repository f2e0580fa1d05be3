"""Memory of a pool: slabs by shape over time, how full each is, and fragmentation."""

import polars as pl

from workbench.catalogue.aegaeon import fig9, fig16
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, Palette, log_axis, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

GIB = 2**30


def slabs(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 9: slabs and KV caches in them while requests come and go; how full each slab is."""
    usage, layout = (outcome.tables[name].filter(pl.col("replication") == 0) for name in ("usage", "layout"))
    palette = Palette(fig9.SHAPES)

    def over_time(made: Canvas, row: int) -> None:
        for shape in fig9.SHAPES:
            part = usage.filter(pl.col("shape") == shape)
            steps = part["step"].to_list()
            for column, dash in (("slab_bytes", "dot"), ("used_bytes", "solid")):
                line = {"color": palette.colour(shape), "dash": dash, "width": 2}
                shown = column == "used_bytes"
                made.add(
                    scatter(steps, (part[column] / GIB).to_list(), mode="lines", name=shape, line=line,
                            legendgroup=shape, showlegend=shown),
                    row=row,
                )  # fmt: skip
        made.x(row, title="requests so far").y(row, title="GiB (dotted: slabs)", rangemode="tozero")

    def by_slab(made: Canvas, row: int) -> None:
        sizes = sorted(layout["block_bytes"].unique().to_list())
        by_size = Palette([f"{size / 2**20:g} MiB" for size in sizes])
        for size in sizes:
            part, name = layout.filter(pl.col("block_bytes") == size), f"{size / 2**20:g} MiB"
            heights = (part["used_share"] * 100).to_list()
            made.add(
                bar(part["slab"].to_list(), heights, name=f"blocks of {name}", marker={"color": by_size.colour(name)}),
                row=row,
            )
        made.x(row, title="slab").y(row, title="% used", range=[0, 105])

    painters = {
        "usage": ("KV caches in the host, and the slabs that they take", over_time),
        "layout": ("the slabs in use at the end", by_slab),
    }
    return stack("One region for caches of several shapes", painters, panel)


def fragmentation(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 16: used and free parts of the slabs by shape, and the free share by the size of a slab."""
    table, chosen = outcome.tables["slabs"].filter(pl.col("replication") == 0), outcome.parameters["slab_mib"]
    here = table.filter(pl.col("slab_mib") == chosen)

    def shapes(made: Canvas, row: int) -> None:
        names = [*here.filter(pl.col("shape") != "all")["shape"].to_list(), "all"]
        by = {entry["shape"]: entry for entry in here.to_dicts()}
        used = [by[name]["used_bytes"] / GIB for name in names if name in by]
        free = [(by[name]["slab_bytes"] - by[name]["used_bytes"]) / GIB for name in names if name in by]
        names = [name for name in names if name in by]
        made.add(bar(names, used, name="used", marker={"color": COLOURS[0]}), row=row)
        made.add(bar(names, free, name="taken but free", marker={"color": COLOURS[1]}), row=row)
        made.y(row, title="GiB", rangemode="tozero")

    def sizes(made: Canvas, row: int) -> None:
        part = table.filter(pl.col("shape") == "all").sort("slab_mib")
        x, y = part["slab_mib"].to_list(), (part["fragmentation"] * 100).to_list()
        line = {"color": COLOURS[1], "width": 2}
        made.add(scatter(x, y, mode="lines+markers", name="all shapes (compiled)", line=line), row=row)
        for trace in published_marks(outcome, Palette(), series={fig16.SERIES: "all"}, x={"": 1024}):
            made.add({**trace, "y": [value * 100 for value in trace["y"]]}, row=row)
        log_axis(made.x(row, title="slab, MiB").y(row, title="% taken but free", rangemode="tozero"), "x", row=row)

    painters = {
        "shapes": (f"each shape at its peak, slabs of {chosen:,} MiB", shapes),
        "sizes": ("by the size of a slab", sizes),
    }
    return stack("Memory of slabs that is taken but free", painters, panel).set(barmode="stack")
