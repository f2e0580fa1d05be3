"""Jobs that share servers: how they slow each other down, a stream of them, and one alone on each chain."""

import polars as pl

from workbench.catalogue.chains import concurrency as sharing
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import SYMBOLS, WORDS, Palette, curve
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack


def concurrency(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds over nominal ones by jobs at once; response of a stream; each chain's job alone beside the formula."""
    tables, palette = outcome.tables, Palette(sharing.HOWS)

    def slowed(made: Canvas, row: int) -> None:
        table = tables["slowdown"]
        for how in (name for name in sharing.HOWS if name in table["how"]):
            made.add(*curve(table.filter(pl.col("how") == how), "jobs", "slowdown", how, palette), row=row)
        made.x(row, title="jobs that start together").y(row, title="seconds over nominal", rangemode="tozero")

    def stream(made: Canvas, row: int) -> None:
        for (how, backend), part in tables["stream"].group_by("how", "backend", maintain_order=True):
            mark = {"color": palette.colour(how), "symbol": SYMBOLS[backend], "size": 8, "line": {"width": 2}}
            line = {"color": palette.colour(how), "dash": palette.dash(how), "width": 1.2}
            trace = scatter(
                part["arrival_s"].to_list(), part["response_s"].to_list(),
                mode="lines" if backend == "compiled" else "lines+markers", marker=mark, line=line,
                name=f"{how} ({WORDS[backend]})", legendgroup=how, showlegend=panel is not None,
            )  # fmt: skip
            made.add(trace, row=row)
        made.x(row, title="arrival, s").y(row, title="response, s", rangemode="tozero")

    def alone(made: Canvas, row: int) -> None:
        table = tables["alone"]
        first = table.filter(pl.col("backend") == table["backend"][0])
        chains, nominal = first["chain"].to_list(), first["nominal_s"].to_list()
        colour = palette.colour(sharing.NOMINAL)
        name = "sum of τc + τp m"
        made.add(bar(chains, nominal, name=name, marker={"color": colour, "opacity": 0.6}), row=row)
        for (backend,), part in table.group_by("backend", maintain_order=True):
            if backend in ("analytic", "compiled"):
                continue
            colour = palette.colour(sharing.ONE_BY_ONE)
            mark = {"color": colour, "symbol": SYMBOLS[backend], "size": 11, "line": {"width": 2}}
            x, y = part["chain"].to_list(), part["seconds"].to_list()
            made.add(scatter(x, y, mode="markers", marker=mark, name=f"alone ({WORDS[backend]})"), row=row)
        made.x(row, title="chain").y(row, title="seconds of a job alone", rangemode="tozero")

    rate = outcome.parameters["arrival_rate_per_s"]
    painters = {"slow-down": ("jobs that start together, each on the fastest free chain", slowed)}
    if "stream" in tables:
        painters["stream"] = (f"a stream of {rate:g} jobs a second", stream)
    if "alone" in tables:
        painters["alone"] = ("a job alone on each chain", alone)
    return stack("Jobs that share servers", painters, panel)
