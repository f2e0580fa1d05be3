"""How many jobs to reserve for: curves by c, the staircase, windows, far servers, finer blocks."""

import polars as pl

from workbench.catalogue.chains import edge_cloud as edge
from workbench.catalogue.chains import tuning as tuned
from workbench.catalogue.chains.c_star import SERIES
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, DASHES, GREY, SYMBOLS, WORDS, Palette, figure, log_axis, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

MARKS = {"surrogate": tuned.SURROGATE, "lower bound": tuned.LOWER, "upper bound": tuned.UPPER}


def tuning(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Surrogate, bounds and simulation by c with stars at the minima; memory by c; the best c of all draws."""
    curve, best, memory, runs = (outcome.tables.get(name) for name in ("curve", "best", "memory", "simulated"))
    palette = Palette([*tuned.TUNED, "simulation"])

    def response(made: Canvas, row: int) -> None:
        first = None if curve is None else _first(curve)
        for rule, column in tuned.TUNED.items() if first is not None else ():
            part = first.filter(pl.col(column).is_not_null()).sort("reserved")
            line = {"color": palette.colour(rule), "dash": palette.dash(rule), "width": 2}
            x, y = part["reserved"].to_list(), part[column].to_list()
            made.add(scatter(x, y, mode="lines", name=rule, line=line, legendgroup=rule), row=row)
            made.add(*_star(part, column, palette.colour(rule), rule), row=row)
        shown = None if runs is None else _first(runs)
        if shown is not None and "compiled" in shown["backend"]:
            shown = shown.filter(pl.col("backend") == "compiled")  # SimPy follows a few of the same jobs
        for (backend,), part in () if shown is None else shown.group_by("backend", maintain_order=True):
            part = part.sort("reserved")
            mark = {"symbol": SYMBOLS[backend], "size": 8, "color": palette.colour("simulation")}
            x, y = part["reserved"].to_list(), part["response_s"].to_list()
            name = f"JFFC ({WORDS[backend]})"
            made.add(scatter(x, y, mode="markers", name=name, marker=mark, legendgroup="simulation"), row=row)
            made.add(*_star(part, "response_s", palette.colour("simulation"), "simulation"), row=row)
        marks = {series: rule for rule, series in MARKS.items()} | {tuned.JFFC: "simulation"}
        made.add(*published_marks(outcome, palette, series=marks), row=row)
        made.x(row, title="jobs reserved for (c)").y(row, title="seconds")
        log_axis(made, "y", row=row)

    def held(made: Canvas, row: int) -> None:
        for size, alpha in () if memory is None else zip(sorted(set(memory["memory_gb"])), (0.45, 0.9), strict=False):
            part = memory.filter(pl.col("memory_gb") == size).unique("reserved").sort("reserved")
            for index, (column, name) in enumerate((("weights_gb", "weights"), ("cache_gb", "cache"))):
                look = {"color": _through(COLOURS[index], alpha)}
                x, y = part["reserved"].to_list(), (part[column] / size * 100).to_list()
                text = f"{name}, {size:g} GB"
                made.add(bar(x, y, name=text, marker=look, offsetgroup=f"{size}", base=None), row=row)
                if column == "cache_gb":
                    made.data[-1]["base"] = (part["weights_gb"] / size * 100).to_list()
        made.set(barmode="group")
        made.x(row, title="jobs reserved for (c)").y(row, title="% of memory", range=[0, 100])

    def draws(made: Canvas, row: int) -> None:
        for rule in tuned.RULES if best is not None else ():
            counts = best.filter((pl.col("rule") == rule) & pl.col("reserved").is_not_null())["reserved"].value_counts()
            counts = counts.sort("reserved")
            look = {"color": palette.colour(rule)}
            x, y = [str(c) for c in counts["reserved"]], counts["count"].to_list()
            made.add(bar(x, y, name=rule, marker=look, legendgroup=rule, showlegend=panel == "draws"), row=row)
        if best is not None:
            values = sorted(set(best["reserved"].drop_nulls()))
            made.x(row, categoryorder="array", categoryarray=[str(value) for value in values])
        made.x(row, title="best c", type="category").y(row, title="draws of sites")

    rate = outcome.parameters["arrival_rate_per_s"]
    painters = {
        "response": (f"first draw, {rate:g} jobs/s; stars: the least of each", response),
        "memory": ("what memory holds, by size of server", held),
        "draws": ("the best c of each draw", draws),
    }
    return stack("How many jobs should cache be reserved for?", painters, panel, heights=(1.5, 1, 0.9))


def _through(colour: str, alpha: float) -> str:
    """A colour #rrggbb that lets through what is behind it, in legends too (they do not show a bar's opacity)."""
    parts = ", ".join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    return f"rgba({parts}, {alpha:g})"


def _first(table: pl.DataFrame) -> pl.DataFrame:
    """The first draw of the first replication."""
    table = table.filter(pl.col("draw") == 0)
    return table.filter(pl.col("replication") == 0) if "replication" in table.columns else table


def _star(part: pl.DataFrame, column: str, colour: str, group: str) -> list[dict]:
    if not len(part):
        return []
    row = part.sort(column, "reserved").row(0, named=True)
    mark = {"symbol": "star", "size": 14, "color": colour}
    style = {"mode": "markers", "marker": mark, "showlegend": False, "legendgroup": group, "name": f"least: {group}"}
    return [scatter([row["reserved"]], [row[column]], **style)]


def staircase(outcome: Outcome, _: str | None = None) -> Canvas:
    """The best c by each rule against the arrival rate."""
    table = _first(outcome.tables["best"]).filter(pl.col("reserved").is_not_null())
    palette = Palette(table["rule"].unique(maintain_order=True).to_list())
    made = figure("The best c against the arrival rate", "arrivals, 1/s", "best c")
    for (rule,), part in table.group_by("rule", maintain_order=True):
        line = {"color": palette.colour(rule), "dash": palette.dash(rule), "width": 2, "shape": "hv"}
        x, y = part["rate_per_s"].to_list(), part["reserved"].to_list()
        made.add(scatter(x, y, mode="lines+markers", name=rule, line=line))
    made.add(*published_marks(outcome, palette, series={SERIES: "lower bound"}))
    return made.y(rangemode="tozero")


def online(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Rate and chosen c over time, and what each plan makes of it."""
    windows, plans = outcome.tables["windows"], outcome.tables["plans"]
    windows = windows.filter(pl.col("backend") == windows["backend"][0])
    windows = windows.filter(pl.col("replication") == 0) if "replication" in windows.columns else windows
    palette = Palette(windows["plan"].unique(maintain_order=True).to_list())

    def chosen(made: Canvas, row: int) -> None:
        for (name,), part in windows.group_by("plan", maintain_order=True):
            line = {"color": palette.colour(name), "dash": palette.dash(name), "width": 2, "shape": "hv"}
            x, y = (part["time_s"] / 3600).to_list(), part["reserved"].to_list()
            made.add(scatter(x, y, mode="lines", name=name, line=line), row=row)
        one = windows.filter(pl.col("plan") == windows["plan"][0])
        most = max(float(one["rate_per_s"].max()), 1e-9)
        scale = float(windows["reserved"].max()) / most
        x, y = (one["time_s"] / 3600).to_list(), (one["rate_per_s"] * scale).to_list()
        name = f"arrivals (top: {most:.3g}/s)"
        made.add(scatter(x, y, mode="lines", name=name, line={"color": GREY, "width": 1, "shape": "hv"}), row=row)
        made.x(row, title="hours").y(row, title="c in the window", rangemode="tozero")

    def compared(made: Canvas, row: int) -> None:
        first = plans.filter(pl.col("backend") == plans["backend"][0])
        first = first.group_by("plan", maintain_order=True).agg(pl.col("response_s", "loaded_bytes").mean())
        colours = [palette.colour(name) if name in set(windows["plan"]) else GREY for name in first["plan"]]
        text = [f"{size / 1e9:,.0f} GB loaded" if size else "" for size in first["loaded_bytes"]]
        x, y = first["plan"].to_list(), first["response_s"].to_list()
        look = {"marker": {"color": colours}, "text": text, "showlegend": False, "name": "mean response"}
        made.add(bar(x, y, **look), row=row)
        made.x(row, type="category", tickangle=-35).y(row, title="mean response, s")
        log_axis(made, "y", row=row)

    painters = {"windows": ("c by window", chosen), "plans": ("fixed c, and c by window", compared)}
    return stack("Chains formed anew as the load changes", painters, panel, heights=(1.1, 1.2))


def edge_cloud(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Mean response of chains and of whole models against the round trip and against memory."""
    parameters = outcome.parameters

    def painter(table: str, x: str, title: str, scale: float):
        def paint(made: Canvas, row: int) -> None:
            part = outcome.tables[table].sort(x)
            for index, (name, column) in enumerate(((edge.CHAINS, "lower_s"), (edge.WHOLE, "whole_s"))):
                one = part.filter(pl.col(column).is_not_null())
                text = [str(hops) for hops in one["hops"]]
                style = {"color": COLOURS[index], "dash": DASHES[index], "width": 2}
                shown = {"showlegend": bool(panel) or table == "trips", "legendgroup": name}
                if column == "lower_s":
                    shown |= {"text": text, "textposition": "top center", "mode": "lines+markers+text"}
                named = f"{name} (number: servers of the quickest)" if column == "lower_s" else name
                xs, ys = (one[x] * scale).to_list(), one[column].to_list()
                made.add(scatter(xs, ys, **{"mode": "lines+markers", "name": named, "line": style, **shown}), row=row)
            made.x(row, title=title).y(row, title="lower bound of response, s", rangemode="tozero")
            log_axis(made, "x", row=row)

        return paint

    painters = {
        "trips": (f"{parameters['memory_gb']:g} GB each", painter("trips", "round_trip_s", "round trip, ms", 1e3)),
        "memory": (
            f"round trips of {parameters['round_trip_s'] * 1e3:g} ms",
            painter("memory", "memory_gb", "memory of each, GB", 1.0),
        ),
    }
    return stack("Chains at the edge", painters, panel, heights=(1.2, 1.2))


def finer_blocks(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Lower bound by c for 1 to 4 blocks a layer, and the memory that holds nothing."""
    curve, splits = outcome.tables["curve"], outcome.tables["splits"]
    curve = curve.filter(pl.col("replication") == 0) if "replication" in curve.columns else curve

    def response(made: Canvas, row: int) -> None:
        for index, ((count,), part) in enumerate(curve.group_by("splits", maintain_order=True)):
            part = part.sort("reserved")
            line = {"color": COLOURS[index], "dash": DASHES[index], "width": 2}
            name = f"{count} block{'s' if count > 1 else ''} a layer"
            x, y = part["reserved"].to_list(), part["lower_s"].to_list()
            made.add(scatter(x, y, mode="lines", name=name, line=line), row=row)
        made.x(row, title="jobs reserved for (c)").y(row, title="lower bound of response, s")

    def memory(made: Canvas, row: int) -> None:
        means = splits.group_by("splits", maintain_order=True).agg(pl.col("unused_gb", "coarse_gb").mean())
        for index, (column, name) in enumerate(
            (("coarse_gb", f"c = {outcome.parameters['reserved']}"), ("unused_gb", "best c"))
        ):
            x, y = [str(count) for count in means["splits"]], means[column].to_list()
            made.add(bar(x, y, name=f"unused, {name}", marker={"color": COLOURS[index + 4]}), row=row)
        made.x(row, title="blocks of a layer", type="category").y(row, title="GB of a server that hold nothing")

    painters = {"response": ("first draw", response), "memory": ("mean over draws", memory)}
    return stack("Layers in finer blocks", painters, panel, heights=(1.2, 1))
