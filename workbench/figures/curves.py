"""Curves of λScale's transfer experiments: one function an experiment, each from tables to a figure."""

import polars as pl

from workbench.catalogue.lambdascale import nccl_honest
from workbench.catalogue.lambdascale.block_count import CURVE
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.figures import pieces
from workbench.figures.base import DASHES, GREY, Palette, curve, figure, log_axis, published_marks
from workbench.figures.canvas import Canvas, scatter
from workbench.figures.panels import stack
from workbench.transfer.policy import SCHEDULES

LABELS = {
    name: SCHEDULES[name].label
    for name in ("binomial_pipeline", "chain", "faasnet_tree", "binomial_tree", "sequential")
}


def block_count(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds against the number of blocks, the best number of each schedule marked by a star."""
    table, parameters = outcome.tables["curve"], outcome.parameters
    palette = Palette(LABELS)
    made = figure(
        f"{name_of(parameters['model'])} to {parameters['nodes']} nodes, by number of blocks", "blocks", "seconds"
    )
    for name, label in LABELS.items():
        part = table.filter(pl.col("schedule") == name)
        made.add(*curve(part, "blocks", "complete_s", name, palette, name=label))
    if (best := outcome.tables.get("best")) is not None:
        made.add(
            scatter(
                best["blocks"].to_list(),
                best["complete_s"].to_list(),
                mode="markers",
                name="best number of blocks",
                marker={"symbol": "star", "size": 12, "color": [palette.colour(name) for name in best["schedule"]]},
                text=[LABELS[name] for name in best["schedule"]],
                hovertemplate="%{text}: %{x} blocks, %{y:.3g} s<extra></extra>",
            )
        )
    known = {CURVE: "binomial_pipeline"}
    made.add(*published_marks(outcome, palette, series=known))
    shown = table.filter(pl.col("schedule").is_in(["binomial_pipeline", "chain"]))["complete_s"]
    span = float(shown.min()) * 0.8, float(table["complete_s"].max()) * 1.1
    return log_axis(log_axis(made, "x", span=(0.9, 1100)), "y", span=span)


def slow_link(outcome: Outcome, _: str | None = None) -> Canvas:
    """Throughput kept against how slow the one slow link is."""
    table = outcome.tables["share"]
    palette = Palette(("binomial_pipeline", "chain"))
    made = figure(
        f"One slow link among {table['nodes'][0]} nodes",
        "bandwidth of the slow link, share of the others'",
        "throughput kept",
    )
    for name in ("binomial_pipeline", "chain"):
        part = table.filter(pl.col("schedule") == name)
        made.add(*pieces.curves(part, "slow_share", "kept", "blocks", name, palette, name=LABELS[name]))
    made.add(*published_marks(outcome, palette))
    made.line(x=outcome.parameters["slow_share"], color=GREY, dash="dot", width=1)
    return made.x(range=[0, 1.05]).y(range=[0, 1.05])


def nccl_told_plainly(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds against ranks, the raw logs as diamonds, the compared records as lines."""
    table = outcome.tables["times"]
    names = table["series"].unique(maintain_order=True).to_list()
    palette = Palette(names)
    made = figure(f"Broadcast of {name_of(outcome.parameters['model'])}", "ranks, source included", "seconds")
    for name in names:
        made.add(*curve(table.filter(pl.col("series") == name), "ranks", "complete_s", name, palette))
    made.add(*published_marks(outcome, palette, series={nccl_honest.RAW: nccl_honest.RING}))
    recorded = outcome.tables["recorded"].unique("series", maintain_order=True)
    for index, row in enumerate(recorded.iter_rows(named=True)):
        made.add(
            scatter(
                [2, 12],
                [row["complete_s"]] * 2,
                mode="lines",
                name=f"{row['series'].removeprefix('recorded time, ')} on 8 nodes, recorded",
                line={"color": GREY, "dash": DASHES[1 + index % 5], "width": 1.5},
                hovertemplate=f"{row['source']}<br>%{{y:.3f}} s<extra>%{{fullData.name}}</extra>",
            )
        )
    return made.y(rangemode="tozero")


def reorder(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds until each milestone against the number of sources, one panel a milestone."""
    table, parameters = outcome.tables["milestones"], outcome.parameters
    orders = table["order"].unique(maintain_order=True).to_list()
    milestones = table["milestone"].unique(maintain_order=True).to_list()
    palette = Palette(orders)

    def painter(milestone: str):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("milestone") == milestone)
            for order in orders:
                for trace in curve(part.filter(pl.col("order") == order), "sources", "time_s", order, palette):
                    made.add({**trace, "showlegend": row == 1}, row=row)
            if milestone == milestones[0]:
                made.add(*published_marks(outcome, palette), row=row)
            made.x(row, title="complete copies at the start (k)").y(row, title="seconds", rangemode="tozero")

        return paint

    title = f"{name_of(parameters['model'])} to {parameters['nodes']} nodes in {parameters['blocks']} blocks"
    return stack(title, {name: (name, painter(name)) for name in milestones}, None)
