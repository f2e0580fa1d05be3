"""Dispatch to chains: policies, bounds, other arrivals, and how far the bounds lie apart."""

import polars as pl

from workbench.catalogue.chains import bound_gap as gap
from workbench.catalogue.chains import bounds as bounding
from workbench.catalogue.chains import dispatchers as dispatching
from workbench.catalogue.chains.assumptions import KINDS, POISSON
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, DASHES, GREY, SYMBOLS, WORDS, Palette, log_axis, published_marks
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack

FILL = "rgba(59,142,240,.14)"


def dispatchers(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Mean response by load and policy, and the share of jobs that the fastest chain takes."""
    table, taken = outcome.tables["response"], outcome.tables["taken"]
    policies = table["policy"].unique(maintain_order=True).to_list()
    palette = Palette(policies)

    def response(made: Canvas, row: int) -> None:
        means = _mean(_drawn(table), ["backend", "policy", "load"])
        for (backend, policy), part in means.group_by("backend", "policy", maintain_order=True):
            made.add(_series(part, "load", "response_s", palette, policy, dispatching.NAMES[policy], backend), row=row)
        marks = {dispatching.SERIES[policy]: policy for policy in dispatching.PAPER if policy in policies}
        made.add(*published_marks(outcome, palette, series=marks), row=row)
        made.x(row, title="load").y(row, title="mean response, s")
        log_axis(made, "y", row=row)

    def chains(made: Canvas, row: int) -> None:
        first = taken.filter(pl.col("backend") == taken["backend"][0])
        for (policy,), part in _mean(first, ["policy", "load"]).group_by("policy", maintain_order=True):
            share = (part["first_chain_share"] * 100).to_list()
            name, look = dispatching.NAMES[policy], {"color": palette.colour(policy)}
            x = [f"{load:g}" for load in part["load"]]
            made.add(bar(x, share, name=name, marker=look, showlegend=panel == "chains", legendgroup=policy), row=row)
        made.x(row, title="load", type="category").y(row, title="% of jobs on the fastest chain")

    painters = {"response": (f"c = {outcome.parameters['reserved']}", response), "chains": ("who uses it", chains)}
    return stack("Dispatch to chains", painters, panel, heights=(1.4, 1))


def bounds(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Theorem 4's bounds with simulated JFFC between them, and two slots of which one is slow."""
    curve, paths, slow = (outcome.tables.get(name) for name in ("bounds", "response", "slow"))
    parameters = outcome.parameters

    def response(made: Canvas, row: int) -> None:
        if curve is not None:
            part = _mean(curve, ["load"])
            made.add(*_band(part, "load", "bounds of Theorem 4"), row=row)
        if paths is not None:
            made.add(*_paths(_drawn(paths), "load", "JFFC"), row=row)
        palette = Palette([bounding.LOWER, bounding.JFFC, bounding.UPPER])
        marks = {name: name for name in (bounding.LOWER, bounding.JFFC, bounding.UPPER)}
        made.add(*published_marks(outcome, palette, series=marks), row=row)
        made.x(row, title="load", range=[0, 1]).y(row, title="mean response, s")

    def two(made: Canvas, row: int) -> None:
        if slow is not None:
            part = _mean(slow, ["slow_rate"])
            made.add(*_band(part, "slow_rate", "bounds of Theorem 4", panel), row=row)
            for index, (column, name) in enumerate(
                (("jffc_s", "JFFC, exact"), ("alone_s", "fast slot alone"), ("best_s", "best threshold"))
            ):
                line = {"color": COLOURS[index + 1], "dash": DASHES[index], "width": 2}
                x, y = part["slow_rate"].to_list(), part[column].to_list()
                made.add(scatter(x, y, mode="lines", name=name, line=line), row=row)
            made.line(x=float(part["break_even"][0]), row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="rate of the slow slot (fast: 1)", rangemode="tozero").y(row, title="mean response, s")

    title = f"two slots at arrival rate {parameters['slow_load']:g}; dotted: where the slow one begins to pay"
    painters = {"response": (f"{parameters['servers']} servers, c = {parameters['reserved']}", response)}
    painters["slow slot"] = (title, two)
    return stack("Bounds of the mean response", painters, panel, heights=(1.2, 1.2))


def assumptions(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Simulated JFFC for other arrivals, and for other sizes, beside the Poisson/exp reference."""
    table, curve = outcome.tables.get("response"), outcome.tables.get("reference")
    table = None if table is None else _drawn(table)

    def painter(kinds: list[tuple[str, str]], shown: int):
        def paint(made: Canvas, row: int) -> None:
            if curve is not None:
                part = _mean(curve.drop("label"), ["load"])
                made.add(*_band(part, "load", curve["label"][0], panel or shown == 0), row=row)
            palette = Palette([shown_ for kind in kinds for shown_ in [kind[shown]]])
            for kind in kinds if table is not None else ():
                part = table.filter((pl.col("arrivals") == kind[0]) & (pl.col("sizes") == kind[1]))
                for (backend,), one in _mean(part, ["backend", "load"]).group_by("backend", maintain_order=True):
                    made.add(_series(one, "load", "response_s", palette, kind[shown], kind[shown], backend), row=row)
            made.x(row, title="load", range=[0, 1]).y(row, title="mean response, s")
            log_axis(made, "y", row=row)

        return paint

    arrivals = [kind for kind in KINDS if kind[1] == "exponential"]
    sizes = [kind for kind in KINDS if kind[0] == POISSON]
    painters = {
        "arrivals": ("exponential sizes, arrivals as named", painter(arrivals, 0)),
        "sizes": ("Poisson arrivals, sizes as named", painter(sizes, 1)),
    }
    return stack("Off Poisson arrivals and exponential sizes", painters, panel, heights=(1.3, 1.1))


def bound_gap(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Bounds, exact value and simulation against spread, load and slots, one panel each."""
    table, parameters = outcome.tables["gap"], outcome.parameters
    titles = {"spread": "fastest over slowest speed", "load": "load", "slots": "slots of each chain"}

    def painter(axis: str):
        def paint(made: Canvas, row: int) -> None:
            part = _drawn(table.filter(pl.col("axis") == axis))
            formula = part.filter(pl.col("backend") == "analytic")
            if len(formula):
                formula = _mean(formula, [axis])
                made.add(*_band(formula, axis, "bounds of Theorem 4", panel or axis == "spread"), row=row)
                solved = formula.filter(pl.col("response_s").is_not_null())
                line = {"color": COLOURS[1], "width": 2}
                x, y = solved[axis].to_list(), solved["response_s"].to_list()
                shown = {"showlegend": bool(panel) or axis == "spread", "legendgroup": "exact"}
                made.add(scatter(x, y, mode="lines", name="JFFC, exact", line=line, **shown), row=row)
            runs = part.filter(pl.col("backend") != "analytic")
            for (backend,), one in runs.group_by("backend", maintain_order=True):
                one = _mean(one, [axis])
                mark = {"symbol": SYMBOLS[backend], "size": 8, "color": COLOURS[2 if backend == "compiled" else 3]}
                x, y = one[axis].to_list(), one["response_s"].to_list()
                shown = {"showlegend": bool(panel) or axis == "spread", "legendgroup": backend}
                bars = {"type": "data", "array": (3 * one["error_s"]).to_list(), "thickness": 1.2}
                name = _with_errors("JFFC", backend)
                made.add(scatter(x, y, mode="markers", name=name, marker=mark, error_y=bars, **shown), row=row)
            made.x(row, title=titles[axis]).y(row, title="mean response", rangemode="tozero")
            if axis == "slots":
                log_axis(made, "x", row=row)

        return paint

    def fixed(axis: str) -> str:
        kept = {"spread": f"speeds {parameters['spread']:g} to 1", "load": f"load {parameters['load']:g}"}
        kept["slots"] = f"{parameters['slots']} slots each"
        return ", ".join(text for name, text in kept.items() if name != axis)

    title = f"How far the bounds lie apart: {parameters['chains']} chains of mean speed 1"
    return stack(title, {axis: (fixed(axis), painter(axis)) for axis in gap.AXES}, panel)


def _drawn(table: pl.DataFrame) -> pl.DataFrame:
    """Of simulations the compiled ones where there are any: SimPy follows a few of the same jobs."""
    return table.filter(pl.col("backend") != "simpy") if "compiled" in table["backend"] else table


def _mean(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Means of all numbers over draws and replications; of standard errors, that of the mean: runs are independent."""
    rest = [name for name in ("draw", "replication") if name in table.columns and name not in keys]
    numbers = [pl.col(pl.Float64).exclude([*keys, "error_s"]).mean()]
    if "error_s" in table.columns:
        numbers.append((pl.col("error_s") ** 2).sum().sqrt() / pl.len())
    return table.drop(rest).group_by(keys, maintain_order=True).agg(numbers).sort(keys)


def _series(part: pl.DataFrame, x: str, y: str, palette: Palette, key: str, name: str, backend: str) -> Trace:
    line = backend == "compiled"
    return scatter(
        part[x].to_list(),
        part[y].to_list(),
        mode="lines+markers" if line else "markers",
        name=f"{name} ({WORDS[backend]})",
        line={"color": palette.colour(key), "dash": palette.dash(key), "width": 2},
        marker={"color": palette.colour(key), "symbol": SYMBOLS[backend], "size": 8},
        legendgroup=key,
    )


def _band(part: pl.DataFrame, x: str, name: str, shown: object = True) -> list[Trace]:
    """The room between lower and upper curve."""
    xs, low, high = (part[column].to_list() for column in (x, "lower_s", "upper_s"))
    line = {"color": COLOURS[0], "width": 1.5}
    group = {"legendgroup": name}
    return [
        scatter(xs, low, mode="lines", line=line, name=name, showlegend=False, **group),
        scatter(
            xs,
            high,
            mode="lines",
            line=line,
            fill="tonexty",
            fillcolor=FILL,
            name=name,
            showlegend=bool(shown),
            **group,
        ),
    ]


def _with_errors(name: str, backend: str) -> str:
    return f"{name} ({WORDS[backend]}), ± 3 standard errors"


def _paths(table: pl.DataFrame, x: str, name: str) -> list[Trace]:
    """Simulated means over draws, each with three standard errors of that mean."""
    traces = []
    for (backend,), part in table.group_by("backend", maintain_order=True):
        part = _mean(part, [x])
        mark = {"symbol": SYMBOLS[backend], "size": 9, "color": COLOURS[1 if backend == "compiled" else 2]}
        bars = {"type": "data", "array": (3 * part["error_s"]).to_list(), "thickness": 1.2}
        xs, ys = part[x].to_list(), part["response_s"].to_list()
        traces.append(scatter(xs, ys, mode="markers", name=_with_errors(name, backend), marker=mark, error_y=bars))
    return traces
