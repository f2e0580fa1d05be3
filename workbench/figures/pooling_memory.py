"""Memory of a pool: slabs by shape over time, how full each is, and fragmentation."""

import polars as pl

from workbench.catalogue.aegaeon import fig9
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import Palette
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
