"""Waiting lines: time in the system by load, errors of approximations, intervals, and how many models are active."""

import polars as pl

from workbench.catalogue.aegaeon.fig4 import PRINTED
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.theory.approximations import CONSTANT, GAMMA
from workbench.figures.base import COLOURS, GREY, SYMBOLS, WORDS, Palette, figure, log_axis, published_marks
from workbench.figures.canvas import Canvas, Trace, scatter
from workbench.figures.panels import stack


def queues(outcome: Outcome, _: str | None = None) -> Canvas:
    """Mean time in the system against the load: a line by formula, marks with 95 % intervals for paths."""
    table, parameters = outcome.tables["response"], outcome.parameters
    made = figure(f"{parameters['queue']}: time in the system", "load", "seconds (a job alone takes 1 s)")
    colour = COLOURS[0]
    for (backend,), part in table.group_by("backend", maintain_order=True):
        part = _means(part, ["load"])
        x, y = part["load"].to_list(), part["response_s"].to_list()
        if backend == "analytic":
            made.add(scatter(x, y, mode="lines", name=WORDS[backend], line={"color": colour, "width": 2}))
        else:
            mark = {"symbol": SYMBOLS[backend], "size": 9, "color": COLOURS[1 if backend == "compiled" else 2]}
            name = f"{WORDS[backend]} path, 95 % interval"
            made.add(scatter(x, y, mode="markers", name=name, marker=mark, error_y=_bars(part, "response_s")))
    made.add(*published_marks(outcome, Palette()))
    made.line(x=parameters["load"], color=GREY, dash="dot", width=1)
    return log_axis(made.x(range=[0, 1]), "y")


def _means(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Mean over replications of every number; `low_s` and `high_s` become the ends of the mean's own interval."""
    numbers = [pl.col(pl.Float64).exclude(keys).mean()]
    means = table.group_by(keys, maintain_order=True)
    if "low_s" not in table.columns:
        return means.agg(numbers).sort(keys)
    half_s = (((pl.col("high_s") - pl.col("low_s")) / 2) ** 2).sum().sqrt() / pl.len()  # replications are independent
    middle_s = (pl.col("low_s") + pl.col("high_s")) / 2
    found = means.agg(*numbers, half_s=half_s).sort(keys)
    return found.with_columns(low_s=middle_s - pl.col("half_s"), high_s=middle_s + pl.col("half_s")).drop("half_s")


def _bars(part: pl.DataFrame, value: str) -> dict:
    return {
        "type": "data",
        "symmetric": False,
        "array": (part["high_s"] - part[value]).to_list(),
        "arrayminus": (part[value] - part["low_s"]).to_list(),
        "thickness": 1.2,
    }


def approximations(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Errors of formulas of two moments where the answer is exact, and waits of lines that share two moments."""
    errors, paths = outcome.tables.get("errors"), outcome.tables.get("families")
    parameters = outcome.parameters
    palette = Palette(parameters["methods"])

    def exact(made: Canvas, row: int) -> None:
        for (method, queue), part in [] if errors is None else errors.group_by("method", "queue", maintain_order=True):
            part = _means(part, ["load"])
            made.add(
                scatter(
                    part["load"].to_list(),
                    (part["relative_error"] * 100).to_list(),
                    mode="lines+markers",
                    name=f"{method} on {SHORT[queue]}",
                    line={"color": palette.colour(method), "dash": "solid" if queue == GAMMA else "dot", "width": 2},
                    marker={"size": 5},
                    legendgroup=method,
                ),
                row=row,
            )
        made.line(y=0, row=row, color=GREY, width=1)
        made.x(row, title="load").y(row, title="error of the mean wait, %")

    def families(made: Canvas, row: int) -> None:
        formulas = outcome.tables.get("formulas")
        for (method,), part in [] if formulas is None else formulas.group_by("method", maintain_order=True):
            part = _means(part, ["load"])
            line = {"color": palette.colour(method), "width": 1.5}
            x, y = part["load"].to_list(), part["wait_s"].to_list()
            style = {"line": line, "legendgroup": method, "showlegend": panel == "families"}
            made.add(scatter(x, y, mode="lines", name=f"{method} (approximation)", **style), row=row)
        for index, ((family,), part) in enumerate(
            [] if paths is None else paths.group_by("family", maintain_order=True)
        ):
            part = _means(part, ["load"])
            mark = {"symbol": ("circle-open", "square-open", "diamond-open")[index % 3], "size": 10, "color": GREY}
            x, y = part["load"].to_list(), part["wait_s"].to_list()
            name = f"{family} (path, 95 % interval)"
            made.add(scatter(x, y, mode="markers", name=name, marker=mark, error_y=_bars(part, "wait_s")), row=row)
        made.add(*published_marks(outcome, palette), row=row)
        made.x(row, title="load").y(row, title="mean wait, s")
        log_axis(made, "y", row=row)

    painters = {
        "errors": (f"{parameters['servers']} servers, where the exact wait is known", exact),
        "families": (
            f"lines of the same two moments (squared CVs {parameters['arrival_scv']:g} and "
            f"{parameters['service_scv']:g}) and what the formulas say of all of them",
            families,
        ),
    }
    return stack("Formulas of means and variances", painters, panel, heights=(1.3, 1.3))


SHORT = {GAMMA: "GI/M/c", CONSTANT: "M/D/c"}


def intervals(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Share of intervals that hold the true wait, and the intervals of one method one by one."""
    table, ones, parameters = outcome.tables["coverage"], outcome.tables["intervals"], outcome.parameters
    palette = Palette(table["method"].unique(maintain_order=True).to_list())

    def coverage(made: Canvas, row: int) -> None:
        band = table.unique("load", maintain_order=True).sort("load")
        loads = band["load"].to_list()
        made.add(
            scatter(
                [*loads, *reversed(loads)],
                [*(band["high"] * 100).to_list(), *reversed((band["low"] * 100).to_list())],
                mode="lines",
                line={"width": 0},
                fill="toself",
                fillcolor="rgba(128,128,128,.22)",
                name="band of an honest method (one point in 100 lies outside)",
                hoverinfo="skip",
            ),
            row=row,
        )
        for (method,), part in table.group_by("method", maintain_order=True):
            part = part.sort("load")
            made.add(
                scatter(
                    part["load"].to_list(),
                    (part["share"] * 100).to_list(),
                    mode="lines+markers",
                    name=method,
                    line={"color": palette.colour(method), "dash": palette.dash(method)},
                    marker={"size": 8},
                ),
                row=row,
            )
        made.line(y=95, row=row, color=GREY, dash="dot", width=1)
        made.add(*published_marks(outcome, palette), row=row)
        made.x(row, title="load").y(row, title="intervals that hold the true wait, %", rangemode="tozero")

    def one_by_one(made: Canvas, row: int) -> None:
        for held, name, colour in ((True, "holds it", COLOURS[2]), (False, "misses it", COLOURS[4])):
            inside = (pl.col("low_s") <= pl.col("exact_s")) & (pl.col("exact_s") <= pl.col("high_s"))
            part = ones.filter(inside if held else ~inside)
            if len(part):
                mark = {"color": colour, "size": 4}
                x, y = part["experiment"].to_list(), part["mean_s"].to_list()
                made.add(
                    scatter(x, y, mode="markers", name=name, marker=mark, error_y=_bars(part, "mean_s")),
                    row=row,
                )
        made.line(y=ones["exact_s"][0], row=row, color=GREY, width=1.5)
        made.x(row, title="experiment").y(row, title="mean wait, s")

    painters = {
        "coverage": (f"{table['experiments'][0]} experiments of {parameters['customers']:,} jobs a load", coverage),
        "intervals": (f"load {parameters['load']:g}, {parameters['method']}; the line is the true wait", one_by_one),
    }
    return stack("95 % intervals of a simulated wait", painters, panel)


def active(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 4: active models over time, and their expected share against the load of a model."""
    parameters = outcome.parameters
    expected, path, load = (outcome.tables.get(name) for name in ("expected", "path", "load"))

    def time(made: Canvas, row: int) -> None:
        if path is not None:
            first = path.filter((pl.col("backend") == path["backend"][0]) & (pl.col("replication") == 0))
            made.add(
                scatter(
                    first["time_s"].to_list(),
                    first["active"].to_list(),
                    mode="lines",
                    name=f"one path ({WORDS[first['backend'][0]]}, {parameters['shape']} times)",
                    line={"color": COLOURS[0], "width": 1.2, "shape": "hv"},
                ),
                row=row,
            )
        if expected is not None:
            until = parameters["until_s"]
            mean, low, high = (expected[name][0] for name in ("mean", "low", "high"))
            made.add(_band([0, until, until, 0], [low, low, high, high], "band that holds 95 % of the time"), row=row)
            line = {"color": COLOURS[1], "width": 2}
            made.add(scatter([0, until], [mean, mean], mode="lines", name="expected (formula)", line=line), row=row)
        places = dict.fromkeys(outcome.published["x"], parameters["until_s"])
        made.add(*published_marks(outcome, Palette([PRINTED]), series={PRINTED: PRINTED}, x=places), row=row)
        made.x(row, title="time, s").y(row, title="active models", rangemode="tozero")

    def by_load(made: Canvas, row: int) -> None:
        if load is not None:
            part = load.filter(pl.col("backend") == "analytic").unique("load").sort("load")
            line = {"color": COLOURS[1], "width": 2}
            x, y = part["load"].to_list(), (part["active_share"] * 100).to_list()
            made.add(scatter(x, y, mode="lines", name="1 - exp(-load) (formula)", line=line), row=row)
        average = _means(outcome.tables["average"].with_columns(pl.col("active").cast(pl.Float64)), ["backend"])
        here = parameters["rate_per_s"] * parameters["active_s"]
        for backend, value in average.filter(pl.col("backend") != "analytic").select("backend", "active").rows():
            mark = {"symbol": SYMBOLS[backend], "size": 10, "color": COLOURS[0]}
            share = value / parameters["models"] * 100
            made.add(
                scatter([here], [share], mode="markers", name=f"time average ({WORDS[backend]})", marker=mark), row=row
            )
        made.line(x=here, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="load of a model: requests per second times seconds", rangemode="tozero")
        made.y(row, title="share of models active, %", rangemode="tozero")

    painters = {
        "time": (f"{parameters['models']} models over time", time),
        "load": ("what scaling by whole requests leaves: one GPU an active model", by_load),
    }
    return stack("Active models", painters, panel)


def _band(x: list[float], y: list[float], name: str) -> Trace:
    style = {"mode": "lines", "line": {"width": 0}, "fill": "toself", "fillcolor": "rgba(232,131,58,.18)"}
    return scatter(x, y, name=name, hoverinfo="skip", **style)


def pool(outcome: Outcome, panel: str | None = None) -> Canvas:
    """How many models are active in which share of the time, and the GPUs that are then enough."""
    shares, needed, parameters = outcome.tables["shares"], outcome.tables["needed"], outcome.parameters
    palette = Palette(needed["by"].unique(maintain_order=True).to_list())
    by = dict(needed.unique("backend", maintain_order=True).select("backend", "by").rows())

    def distribution(made: Canvas, row: int) -> None:
        for (backend,), part in shares.group_by("backend", maintain_order=True):
            runs = part["replication"].n_unique() if "replication" in part.columns else 1
            part = part.group_by("active").agg(pl.col("time_share").sum() / runs).sort("active")
            colour = palette.colour(by[backend])
            made.add(
                scatter(
                    part["active"].to_list(),
                    (part["time_share"].cum_sum() * 100).to_list(),
                    mode="lines",
                    name=f"active {by[backend]}",
                    line={"color": colour, "shape": "hv", "width": 2, "dash": palette.dash(by[backend])},
                    legendgroup=by[backend],
                ),
                row=row,
            )
        made.line(y=parameters["time_share"] * 100, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="active models").y(row, title="share of the time with no more, %", rangemode="tozero")

    def gpus(made: Canvas, row: int) -> None:
        for (backend,), part in needed.group_by("backend", maintain_order=True):
            part = part.filter(pl.col("replication") == 0) if "replication" in part.columns else part
            made.add(
                {
                    "type": "bar",
                    "x": [f"{share:.4g}" for share in part["share"]],
                    "y": part["gpus"].to_list(),
                    "name": f"GPUs {by[backend]}",
                    "marker": {"color": palette.colour(by[backend])},
                    "legendgroup": by[backend],
                    "showlegend": panel == "gpus",
                },
                row=row,
            )
        dedicated = needed["dedicated"][0]
        made.line(y=dedicated, row=row, color=GREY, dash="dash", width=1.5)
        made.x(row, title="enough for this share of the time", type="category")
        made.y(row, title=f"GPUs (dashed: {dedicated} dedicated)", rangemode="tozero")

    painters = {
        "shares": (f"{needed['models'][0]} models", distribution),
        "gpus": (f"{needed['models_a_gpu'][0]} models fit a GPU", gpus),
    }
    return stack("Pool size", painters, panel)
