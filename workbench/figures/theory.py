"""Curves of the theory experiments: schedules over sizes, and fitted against measured links."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.theory.link_validation import LIMIT
from workbench.catalogue.theory.multicast import BOUND
from workbench.figures.base import GREY, Palette, curve, log_axis, published_marks
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack


def multicast(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Steps of every schedule against the number of nodes, and how many nodes are complete when."""
    table, bound, parameters = outcome.tables["steps"], outcome.tables.get("bound"), outcome.parameters
    names = table["schedule"].unique(maintain_order=True).to_list()
    palette = Palette(names)

    def steps(made: Canvas, row: int) -> None:
        for name in names:
            traces = curve(table.filter(pl.col("schedule") == name), "nodes", "steps", name, palette)
            if len(traces) > 1:  # the compiled loop's line lies on the formula's
                traces = [trace for trace in traces if not trace["name"].endswith("(compiled)")]
            made.add(*traces, row=row)
        if bound is not None:
            made.add(_bound(bound["nodes"].to_list(), bound["steps"].to_list()), row=row)
        made.add(*published_marks(outcome, palette), row=row)
        made.line(x=parameters["nodes"], row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="nodes, source included").y(row, title="steps")
        log_axis(made, "y", row=row)

    def blocks(made: Canvas, row: int) -> None:
        part = outcome.tables.get("by_blocks")
        for name in (*names, BOUND) if part is not None else ():
            one = part.filter(pl.col("schedule") == name)
            x, y = one["blocks"].to_list(), one["steps"].to_list()
            if name == BOUND:
                made.add({**_bound(x, y), "showlegend": panel == "blocks"}, row=row)
            else:
                style = {"color": palette.colour(name), "dash": palette.dash(name), "width": 2}
                made.add(
                    scatter(x, y, mode="lines", name=name, line=style, legendgroup=name, showlegend=panel == "blocks"),
                    row=row,
                )
        made.line(x=parameters["blocks"], row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="blocks (m)").y(row, title="steps")
        log_axis(made, "x", "y", row=row)

    def spread(made: Canvas, row: int) -> None:
        part = outcome.tables.get("spread")
        for name in names if part is not None else ():
            one = part.filter(pl.col("schedule") == name)
            made.add(
                scatter(
                    one["steps"].to_list(),
                    one["complete_nodes"].to_list(),
                    mode="lines",
                    line={"color": palette.colour(name), "dash": palette.dash(name), "shape": "hv", "width": 2},
                    name=name,
                    legendgroup=name,
                    showlegend=panel == "spread",
                ),
                row=row,
            )
        made.x(row, title="step").y(row, title="complete nodes", rangemode="tozero")
        log_axis(made, "x", row=row)

    painters = {
        "steps": (f"steps for {parameters['blocks']} blocks", steps),
        "blocks": (f"steps to {parameters['nodes']} nodes, by number of blocks", blocks),
        "spread": (f"complete nodes of {parameters['nodes']}, step by step", spread),
    }
    return stack("Multicast schedules", painters, panel, heights=(1.3, 1, 1))


def _bound(x: list[float], y: list[float]) -> Trace:
    return scatter(x, y, mode="lines", name=BOUND, line={"color": GREY, "dash": "dot", "width": 3})


def _in_two_lines(name: str) -> str:
    """A link's name as a tick label that leaves room for its bar."""
    for start in (" in a host", " across hosts", " (APEX+)"):
        before, found, after = name.partition(start)
        if found:
            return f"{before}<br>{found.strip()}{after}"
    return name


def link_validation(outcome: Outcome, panel: str | None = None) -> Canvas:
    """How far the fit misses sizes it was not fitted to, and fitted and measured times against message size."""
    fits, curves, points = outcome.tables["fits"], outcome.tables["curves"], outcome.tables.get("measured")
    names = fits["link"].to_list()
    palette = Palette(names)

    def errors(made: Canvas, row: int) -> None:
        made.add(
            bar(
                (fits["median_error"] * 100).to_list(),
                names,
                orientation="h",
                showlegend=False,
                marker={"color": [palette.colour(name) for name in names]},
                customdata=[f"{fit['bytes_per_s']:.3g} bytes/s, {fit['alpha_s']:.2g} s" for fit in fits.to_dicts()],
                hovertemplate="%{y}: %{x:.1f} %<br>%{customdata}<extra></extra>",
            ),
            row=row,
        )
        made.line(x=LIMIT * 100, row=row, color=GREY, dash="dot")
        made.x(row, title=f"median error on sizes not fitted to, % (dotted: {LIMIT * 100:.0f} %)").y(
            row,
            autorange="reversed",
            tickvals=names,
            ticktext=[_in_two_lines(name) for name in names],
            tickfont={"size": 11},
        )

    def times(made: Canvas, row: int) -> None:
        for name in names:
            part = curves.filter(pl.col("link") == name).sort("message_bytes")
            colour = palette.colour(name)
            style = {"color": colour, "dash": palette.dash(name), "width": 1.5}
            x, y = part["message_bytes"].to_list(), part["fitted_s"].to_list()
            made.add(scatter(x, y, mode="lines", name=name, legendgroup=name, line=style), row=row)
            if points is not None:
                real = points.filter(pl.col("link") == name).sort("message_bytes")
                x, y = real["message_bytes"].to_list(), real["measured_s"].to_list()
                mark = {"symbol": "diamond-open", "size": 6, "color": colour}
                label = f"{name} (measured)"
                made.add(
                    scatter(x, y, mode="markers", name=label, legendgroup=name, showlegend=False, marker=mark), row=row
                )
        made.add(*published_marks(outcome, palette), row=row)
        made.line(x=outcome.parameters["switch_bytes"], row=row, color=GREY, dash="dot")
        made.x(row, title="bytes").y(row, title="seconds")
        log_axis(made, "x", "y", row=row)

    painters = {
        "errors": ("how far α + S/B is off above 1 MiB", errors),
        "times": ("fitted times" if points is None else "fitted (lines) and measured (diamonds) times", times),
    }
    return stack("α + S/B against measured transfers", painters, panel, heights=(2.4, 1.6))
