"""How long weights are kept and where starts find them: λScale's Figures 2 and 3, and its keep-alive simulation."""

import polars as pl

from workbench.caching.policy import COLD, STARTS
from workbench.catalogue.lambdascale import fig2 as residencies
from workbench.catalogue.lambdascale.fig3 import SERIES
from workbench.catalogue.lambdascale.keep_alive import COLD_SHARE, FROM_LOAD, FROM_USE, MEMORY, OVER_SHARE
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, SYMBOLS, WORDS, Palette, pattern, published_marks
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack

SHORT = {FROM_LOAD: "counted from the load", FROM_USE: "counted from the last use"}


def _mark(backend: str, colour: str, size: int) -> dict[str, object]:
    return {"color": colour, "symbol": SYMBOLS[backend], "size": size, "line": {"width": 2, "color": colour}}


def _runs(table: pl.DataFrame, x: str, y: str, name: str, palette: Palette, key: str, **style: object) -> list[Trace]:
    """A curve of one series: a line with marks for the first backend, marks for the others."""
    traces = []
    for (backend,), part in table.group_by("backend", maintain_order=True):
        part = part.sort(x)
        first = backend == table["backend"][0]
        colour = palette.colour(key)
        traces.append(
            scatter(
                part[x].to_list(),
                part[y].to_list(),
                name=f"{name} ({WORDS[backend]})",
                mode="lines+markers" if first else "markers",
                line={"color": colour, "dash": palette.dash(key), "width": 2},
                marker=_mark(backend, colour, 6 if first else 12),
                legendgroup=key,
                **style,
            )
        )
    return traces


def keep_alive(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Starts from each tier, and what keeping costs, against keep-alive, under two ways to count it."""
    table = outcome.tables["sweep"]
    palette = Palette((FROM_LOAD, FROM_USE))
    cold = table.filter(pl.col("tier") == STARTS[COLD])

    def starts(made: Canvas, row: int) -> None:
        for rule, name in SHORT.items():
            made.add(*_runs(cold.filter(pl.col("rule") == rule), "keep_alive_s", "share", name, palette, rule), row=row)
        made.add(*_marks(outcome, palette, COLD_SHARE), row=row)
        made.x(row, title="keep-alive in host memory, s").y(row, title="share of cold starts", range=[0, 1])

    def cost(made: Canvas, row: int) -> None:
        held = cold.with_columns(held=pl.col("held_bytes_s") / 1e15)
        for rule, name in SHORT.items():
            part = held.filter(pl.col("rule") == rule)
            style = {"showlegend": panel == "cost"}
            made.add(*_runs(part, "keep_alive_s", "held", name, palette, rule, **style), row=row)
        for trace in _marks(outcome, palette, MEMORY):
            made.add({**trace, "y": [value / 1e15 for value in trace["y"]], "showlegend": panel == "cost"}, row=row)
        made.x(row, title="keep-alive in host memory, s").y(row, title="memory held, 10¹⁵ bytes s", rangemode="tozero")

    def over(made: Canvas, row: int) -> None:
        for rule, name in SHORT.items():
            part = cold.filter(pl.col("rule") == rule)
            style = {"showlegend": False}
            made.add(*_runs(part, "keep_alive_s", "over_share", name, palette, rule, **style), row=row)
        made.add(*({**trace, "showlegend": False} for trace in _marks(outcome, palette, OVER_SHARE)), row=row)
        made.x(row, title="keep-alive in host memory, s").y(row, title="share of time", range=[0, 1.05])

    painters = {
        "starts": (f"starts that load from SSD ({table['trace'][0]})", starts),
        "cost": ("host memory held", cost),
        "over": ("time with more copies than nodes serving", over),
    }
    return stack("Keep-alive: cold starts against memory", painters, panel)


def _marks(outcome: Outcome, palette: Palette, series: str) -> list[Trace]:
    """Published marks with a name that fits a legend."""
    return [
        {**trace, "name": "artifact's own script, run by us"} if series in trace["name"] else trace
        for trace in published_marks(outcome, palette, series={series: FROM_LOAD})
    ]


def tiers(outcome: Outcome, panel: str | None = None) -> Canvas:
    """λScale Figure 3: bars of hot, warm and cold starts by trace, and the cold share against keep-alive."""
    table, sweep = outcome.tables["shares"], outcome.tables["sweep"]
    first = table["backend"][0]
    palette, traces = Palette(STARTS), Palette(sweep["trace"].unique(maintain_order=True).to_list())

    def shares(made: Canvas, row: int) -> None:
        for tier in STARTS:
            part = table.filter((pl.col("backend") == first) & (pl.col("tier") == tier))
            made.add(
                bar(
                    part["trace"].to_list(),
                    part["share"].to_list(),
                    name=tier,
                    marker={"color": palette.colour(tier), "pattern": {"shape": pattern(first)}},
                    text=[f"{share:.0%}" for share in part["share"]],
                    textposition="inside",
                    insidetextanchor="middle",
                    width=0.5,
                    hovertemplate="%{x}: %{y:.1%}<extra>%{fullData.name}</extra>",
                ),
                row=row,
            )
        made.y(row, title="share of starts", range=[0, 1.02])

    def keep(made: Canvas, row: int) -> None:
        for (name,), part in sweep.group_by("trace", maintain_order=True):
            made.add(*_runs(part, "keep_alive_s", "share", f"SSD, {name}", traces, name), row=row)
        made.line(x=outcome.parameters["keep_s"], row=row, color=GREY, dash="dot", width=1)
        published = outcome.published.filter((pl.col("series") == SERIES) & (pl.col("kind") == "published"))
        marks = {"symbol": "diamond-open", "size": 12, "color": GREY, "line": {"width": 2}}
        made.add(
            scatter(
                [15] * len(published),
                published["value"].to_list(),
                mode="markers",
                name="the paper's two traces, not named (published)",
                marker=marks,
                text=published["x"].to_list(),
                hovertemplate="%{text}: %{y:.0%}<extra>%{fullData.name}</extra>",
            ),
            row=row,
        )
        made.x(row, title="keep-alive in host memory, s").y(row, title="share of starts from SSD", range=[0, 1])

    painters = {
        "shares": (f"{outcome.parameters['keep_s']} s of keep-alive", shares),
        "keep": ("starts from SSD by keep-alive", keep),
    }
    return stack("Where starts find the weights", painters, panel).set(barmode="stack")


def residency(outcome: Outcome, panel: str | None = None) -> Canvas:
    """λScale Figure 2: shares of evictions by age, and what each reading of the set-up gives."""
    table, readings, parameters = outcome.tables["curves"], outcome.tables.get("readings"), outcome.parameters
    names = table["measure"].unique(maintain_order=True).to_list()
    palette, by_reading = Palette(names), Palette(name for name, *_ in residencies.READINGS)

    def times(made: Canvas, row: int) -> None:
        for name in names:
            for (backend,), part in table.filter(pl.col("measure") == name).group_by("backend", maintain_order=True):
                part = part.filter(pl.col("replication") == 0).sort("time_s")
                line = backend == "analytic"
                part = part if line else part.gather_every(4, 2 if backend == "simpy" else 0)
                colour = palette.colour(name)
                made.add(
                    scatter(
                        part["time_s"].to_list(),
                        part["share"].to_list(),
                        name=f"{name} ({WORDS[backend]})",
                        mode="lines" if line else "markers",
                        line={"color": colour, "dash": palette.dash(name), "width": 2},
                        marker=_mark(backend, colour, 7),
                        legendgroup=name,
                    ),
                    row=row,
                )
        _limit(made, row)

    def by_readings(made: Canvas, row: int) -> None:
        for (name,), part in [] if readings is None else readings.group_by("reading", maintain_order=True):
            part = part.filter(pl.col("replication") == 0)
            made.add(
                scatter(
                    part["time_s"].to_list(),
                    part["share"].to_list(),
                    mode="lines",
                    name=f"{name} (formula)",
                    line={"color": by_reading.colour(name), "dash": by_reading.dash(name), "width": 2},
                    legendgroup=f"reading {name}",
                ),
                row=row,
            )
        _limit(made, row)

    def _limit(made: Canvas, row: int) -> None:
        known = {residencies.SERIES: parameters["measure"]}
        for trace in published_marks(outcome, palette, series=known, x={"15 s": residencies.LIMIT_S}):
            name = trace["name"].replace(residencies.SERIES, "more than 95 % below 15 s")
            made.add({**trace, "name": name, "showlegend": row == 1}, row=row)
        made.line(x=residencies.LIMIT_S, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="time, s", rangemode="tozero").y(row, title="share of evicted models", range=[0, 1.03])

    held = f"{parameters['capacity']} of {parameters['models']} models, each asked for every {parameters['gap_s']:g} s"
    limit = f"dotted: {residencies.LIMIT_S:g} s"
    painters = {
        "times": (f"{held}; {limit}", times),
        "readings": (f"what the text could mean; {limit}", by_readings),
    }
    return stack("Time in a least-recently-used cache", painters, panel)
