"""Curves of transfer experiments: one function an experiment, each from tables to a figure."""

import plotly.graph_objects as go
import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import (
    COLOURS,
    DASHES,
    GREY,
    WORDS,
    Palette,
    curve,
    figure,
    log_axis,
    published_marks,
)
from workbench.figures.panels import stack

LABELS = {
    "binomial_pipeline": "binomial pipeline",
    "chain": "chain",
    "faasnet_tree": "FaaSNet tree",
    "binomial_tree": "binomial tree",
    "sequential": "sequential (star)",
}
LAST = "time until the last node holds the weights"


def block_count(outcome: Outcome, _: str | None = None) -> go.Figure:
    """Seconds against the number of blocks, the best number of each schedule marked by a star."""
    table, best, parameters = outcome.tables["curve"], outcome.tables["best"], outcome.parameters
    palette = Palette(LABELS)
    made = figure(
        f"{parameters['model']} to {parameters['nodes']} nodes, by number of blocks", "blocks (log)", "seconds (log)"
    )
    for name, label in LABELS.items():
        made.add_traces(
            curve(table.filter(pl.col("schedule") == name), "blocks", "complete_s", name, palette, name=label)
        )
    first = best.filter(pl.col("backend") == best["backend"][0])
    made.add_trace(
        go.Scatter(
            x=first["blocks"].to_list(),
            y=first["complete_s"].to_list(),
            mode="markers",
            name="best number of blocks",
            marker={"symbol": "star", "size": 12, "color": [palette.colour(name) for name in first["schedule"]]},
            text=[LABELS[name] for name in first["schedule"]],
            hovertemplate="%{text}: %{x} blocks, %{y:.3g} s<extra></extra>",
        )
    )
    made.add_traces(
        published_marks(
            outcome, palette, series={"time against number of blocks, FaaScale 13B, 8 nodes": "binomial_pipeline"}
        )
    )
    shown = table.filter(pl.col("schedule").is_in(["binomial_pipeline", "chain"]))["complete_s"]
    low, high = float(shown.min()) * 0.8, float(table["complete_s"].max()) * 1.1
    return log_axis(log_axis(made, "x", span=(0.9, 1100)), "y", span=(low, high))


def slow_link(outcome: Outcome, _: str | None = None) -> go.Figure:
    """Throughput kept against how slow the one slow link is."""
    palette = Palette(("binomial_pipeline", "chain"))
    made = figure(
        f"One slow link among {outcome.tables['share']['nodes'][0]} nodes",
        "bandwidth of the slow link, share of the others'",
        "throughput kept",
    )
    for name in ("binomial_pipeline", "chain"):
        part = outcome.tables["share"].filter(pl.col("schedule") == name)
        made.add_traces(curve(part, "slow_share", "kept", name, palette, name=LABELS[name]))
    made.add_traces(published_marks(outcome, palette))
    made.add_vline(x=outcome.parameters["slow_share"], line={"color": GREY, "dash": "dot", "width": 1})
    return made.update_yaxes(range=[0, 1.05]).update_xaxes(range=[0, 1.05])


def nccl_honest(outcome: Outcome, _: str | None = None) -> go.Figure:
    """Seconds against ranks, the raw logs as diamonds, the compared records as lines."""
    table = outcome.tables["times"]
    palette = Palette(table["series"].unique(maintain_order=True).to_list())
    made = figure(f"Broadcast of {outcome.parameters['model']}", "ranks, source included", "seconds")
    for name in table["series"].unique(maintain_order=True):
        made.add_traces(curve(table.filter(pl.col("series") == name), "ranks", "complete_s", name, palette))
    made.add_traces(published_marks(outcome, palette, series={"raw NCCL broadcast, 13B, x = ranks": "ring broadcast"}))
    recorded = outcome.tables["recorded"].unique("series", maintain_order=True)
    for index, row in enumerate(recorded.iter_rows(named=True)):
        made.add_trace(
            go.Scatter(
                x=[2, 12],
                y=[row["complete_s"]] * 2,
                mode="lines",
                name=f"{row['series'].removeprefix('recorded time, ')} on 8 nodes, recorded",
                line={"color": GREY, "dash": DASHES[1 + index % 5], "width": 1.5},
                hovertemplate=f"{row['source']}<br>%{{y:.3f}} s<extra>%{{fullData.name}}</extra>",
            )
        )
    return made.update_yaxes(rangemode="tozero")


def reorder(outcome: Outcome, _: str | None = None) -> go.Figure:
    """Seconds until each milestone against the number of sources, one panel a milestone."""
    table = outcome.tables["milestones"]
    palette = Palette(table["order"].unique(maintain_order=True).to_list())

    def painter(milestone: str):
        def paint(made: go.Figure, row: int) -> None:
            part = table.filter(pl.col("milestone") == milestone)
            for order in part["order"].unique(maintain_order=True):
                for trace in curve(part.filter(pl.col("order") == order), "sources", "time_s", order, palette):
                    made.add_trace(trace.update(showlegend=row == 1), row=row, col=1)
            if milestone == table["milestone"][0]:
                for trace in published_marks(outcome, palette):
                    made.add_trace(trace, row=row, col=1)
            made.update_yaxes(title_text="seconds", rangemode="tozero", row=row, col=1)
            made.update_xaxes(title_text="complete copies at the start (k)", row=row, col=1)

        return paint

    milestones = table["milestone"].unique(maintain_order=True).to_list()
    title = (
        f"{outcome.parameters['model']} to {outcome.parameters['nodes']} nodes in {outcome.parameters['blocks']} blocks"
    )
    return stack(title, {name: (name, painter(name)) for name in milestones}, None)


def chain_and_star(outcome: Outcome, panel: str | None = None) -> go.Figure:
    """BlitzScale Figure 13: completion of each target by plan, and of two unequal targets in both orders."""
    table, order, parameters = outcome.tables["completion"], outcome.tables["order"], outcome.parameters
    plans = table["plan"].unique(maintain_order=True).to_list()
    palette = Palette(plans)

    def targets(made: go.Figure, row: int) -> None:
        for plan in plans:
            part = table.filter(pl.col("plan") == plan)
            fine = pl.col("units") == pl.col("units").max().over("backend")
            for trace in curve(part.filter(fine), "target", "complete_s", plan, palette):
                made.add_trace(trace, row=row, col=1)
        places = {
            "chain, 1 hop": 1,
            "chain, 8 hops, 2 MiB units": 8,
            "chain, 8 hops, whole layers (436 MB)": 8,
            "star, 8 targets": 8,
        }
        for trace in published_marks(outcome, palette, series={LAST: plans[0]}, x=places):
            made.add_trace(trace, row=row, col=1)
        made.update_xaxes(title_text="target (place in the plan)", row=row, col=1)
        made.update_yaxes(title_text="seconds (log)", row=row, col=1)
        log_axis(made, "y", row=row)

    def orders(made: go.Figure, row: int) -> None:
        fine = order.filter(pl.col("units") == pl.col("units").max().over("backend"))
        for (backend, name), part in fine.group_by("backend", "node", maintain_order=True):
            index = 0 if name == "faster link" else 1
            made.add_trace(
                go.Bar(
                    x=part["order"].to_list(),
                    y=part["complete_s"].to_list(),
                    name=f"node with the {name} ({WORDS[backend]})",
                    marker={"color": COLOURS[3 + index], "pattern": {"shape": _pattern(backend)}},
                ),
                row=row,
                col=1,
            )
        made.update_yaxes(title_text="seconds without weights", rangemode="tozero", row=row, col=1)

    painters = {
        "targets": (f"{parameters['model']}, {parameters['targets']} targets", targets),
        "order": (f"two targets, one with a link {parameters['faster']:g} times as fast", orders),
    }
    return stack("Serial chain and star", painters, panel, heights=(1.2, 1))


def lanes(outcome: Outcome, _: str | None = None) -> go.Figure:
    """BlitzScale Figure 14: seconds against the number of lanes."""
    table = outcome.tables["lanes"]
    plans = table["plan"].unique(maintain_order=True).to_list()
    palette = Palette(plans)
    made = figure(f"{outcome.parameters['model']} from host to host", "lanes (accelerator pairs)", "seconds")
    for plan in plans:
        made.add_traces(curve(table.filter(pl.col("plan") == plan), "lanes", "complete_s", plan, palette))
    one = table.filter((pl.col("lanes") == 1) & (pl.col("plan") == plans[0]))["complete_s"][0]
    ideal = table["lanes"].unique().sort()
    made.add_trace(
        go.Scatter(
            x=ideal.to_list(),
            y=(one / ideal).to_list(),
            mode="lines",
            name="one lane's time over g",
            line={"color": GREY, "dash": "dot", "width": 1.5},
        )
    )
    made.add_traces(published_marks(outcome, palette))
    for row in outcome.published.filter(pl.col("kind") != "user").iter_rows(named=True):
        count = float(row["x"].split()[0])
        made.add_trace(
            go.Scatter(
                x=[count],
                y=[row["value"] * one],
                mode="markers",
                name="published: 1/g",
                marker={"symbol": "diamond-open", "size": 12, "color": GREY, "line": {"width": 2}},
                hovertemplate=f"{row['source']}<extra>published</extra>",
            )
        )
    return made.update_yaxes(rangemode="tozero").update_xaxes(tickvals=ideal.to_list())


def multicast(outcome: Outcome, panel: str | None = None) -> go.Figure:
    """Steps of every schedule against the number of nodes, and how many nodes are complete when."""
    table, bound, parameters = outcome.tables["steps"], outcome.tables["bound"], outcome.parameters
    names = table["schedule"].unique(maintain_order=True).to_list()
    palette = Palette(names)

    def steps(made: go.Figure, row: int) -> None:
        for name in names:
            for trace in curve(table.filter(pl.col("schedule") == name), "nodes", "steps", name, palette):
                if trace.name.endswith("(compiled)"):
                    continue  # lies on the formula's line
                made.add_trace(trace, row=row, col=1)
        line = bound.filter(pl.col("backend") == bound["backend"][0])
        made.add_trace(
            go.Scatter(
                x=line["nodes"].to_list(),
                y=line["steps"].to_list(),
                mode="lines",
                name="lower bound m - 1 + ⌈log2 n⌉",
                line={"color": GREY, "dash": "dot", "width": 3},
            ),
            row=row,
            col=1,
        )
        for trace in published_marks(outcome, palette):
            made.add_trace(trace, row=row, col=1)
        made.add_vline(x=parameters["nodes"], line={"color": GREY, "dash": "dot", "width": 1}, row=row, col=1)
        made.update_xaxes(title_text="nodes, source included", row=row, col=1)
        made.update_yaxes(title_text="steps (log)", row=row, col=1)
        log_axis(made, "y", row=row)

    def spread(made: go.Figure, row: int) -> None:
        part = outcome.tables.get("spread")
        for name in names if part is not None else ():
            one = part.filter(pl.col("schedule") == name)
            made.add_trace(
                go.Scatter(
                    x=one["steps"].to_list(),
                    y=one["complete_nodes"].to_list(),
                    mode="lines",
                    line={"color": palette.colour(name), "dash": palette.dash(name), "shape": "hv", "width": 2},
                    name=name,
                    legendgroup=name,
                    showlegend=panel == "spread",
                ),
                row=row,
                col=1,
            )
        made.update_xaxes(title_text="step (log)", row=row, col=1)
        log_axis(made, "x", row=row)
        made.update_yaxes(title_text="complete nodes", row=row, col=1)

    painters = {
        "steps": (f"steps for {parameters['blocks']} blocks", steps),
        "spread": (f"complete nodes of {parameters['nodes']}, step by step", spread),
    }
    return stack("Multicast schedules", painters, panel, heights=(1.3, 1))


def link_validation(outcome: Outcome, panel: str | None = None) -> go.Figure:
    """How far the fit misses sizes it was not fitted to, and fitted and measured times against message size."""
    fits, curves, points = outcome.tables["fits"], outcome.tables["curves"], outcome.tables.get("measured")
    names = fits["link"].to_list()
    palette = Palette(names)

    def errors(made: go.Figure, row: int) -> None:
        made.add_trace(
            go.Bar(
                y=names,
                x=(fits["median_error"] * 100).to_list(),
                orientation="h",
                showlegend=False,
                marker={"color": [palette.colour(name) for name in names]},
                customdata=[f"{row['bytes_per_s']:.3g} bytes/s, {row['alpha_s']:.2g} s" for row in fits.to_dicts()],
                hovertemplate="%{y}: %{x:.1f} %<br>%{customdata}<extra></extra>",
            ),
            row=row,
            col=1,
        )
        made.add_vline(x=15, line={"color": GREY, "dash": "dot"}, row=row, col=1)
        made.update_xaxes(title_text="median error on sizes not fitted to, % (dotted: 15 %)", row=row, col=1)
        made.update_yaxes(autorange="reversed", row=row, col=1)

    def times(made: go.Figure, row: int) -> None:
        for name in names:
            part = curves.filter(pl.col("link") == name).sort("message_bytes")
            colour = palette.colour(name)
            made.add_trace(
                go.Scatter(
                    x=part["message_bytes"].to_list(),
                    y=part["fitted_s"].to_list(),
                    mode="lines",
                    name=name,
                    showlegend=False,
                    line={"color": colour, "dash": palette.dash(name), "width": 1.5},
                ),
                row=row,
                col=1,
            )
            if points is not None:
                real = points.filter(pl.col("link") == name).sort("message_bytes")
                made.add_trace(
                    go.Scatter(
                        x=real["message_bytes"].to_list(),
                        y=real["measured_s"].to_list(),
                        mode="markers",
                        name=f"{name} (measured)",
                        showlegend=False,
                        marker={"symbol": "diamond-open", "size": 6, "color": colour},
                    ),
                    row=row,
                    col=1,
                )
        for trace in published_marks(outcome, palette):
            made.add_trace(trace, row=row, col=1)
        made.add_vline(x=outcome.parameters["switch_bytes"], line={"color": GREY, "dash": "dot"}, row=row, col=1)
        made.update_xaxes(title_text="bytes (log)", type="log", dtick=1, row=row, col=1)
        made.update_yaxes(title_text="seconds (log)", type="log", dtick=1, row=row, col=1)

    painters = {
        "errors": ("how far α + S/B is off above 1 MiB", errors),
        "times": ("fitted (lines) and measured (diamonds) times", times),
    }
    return stack("α + S/B against measured transfers", painters, panel, heights=(1, 1.3)).update_layout(height=1000)


def _pattern(backend: str) -> str:
    return {"analytic": "", "simpy": "/", "torch": "x", "recorded": "."}.get(backend, "")
