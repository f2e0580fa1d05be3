"""Chains against other systems, and what the trace of the testbed says about arrivals and service."""

import polars as pl

from workbench.catalogue.chains import bursts as bursty
from workbench.catalogue.chains import overall as whole
from workbench.catalogue.chains import tab1
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, DASHES, GREY, SYMBOLS, Palette, figure, log_axis, pattern, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

PLACE = {"servers": 0.2, "shares": 20}
ANY_S = (0.1, 100.0)
"""Seconds that an axis spans before anything is drawn: as logarithmic as it will be then."""


def overall(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Mean response of four systems against the number of servers, and against the share of fast ones."""
    table = outcome.tables["response"].filter(pl.col("response_s").is_not_null())
    table = table.filter(pl.col("backend") == table["backend"][0])
    means = table.group_by("servers", "fast_share", "system", maintain_order=True).agg(pl.col("response_s").mean())
    palette = Palette(whole.SYSTEMS)

    def painter(x: str, other: str, value: float, title: str):
        def paint(made: Canvas, row: int) -> None:
            part = means.filter((pl.col(other) - value).abs() < 1e-9)
            for (name,), one in part.group_by("system", maintain_order=True):
                one = one.sort(x)
                line = {"color": palette.colour(name), "dash": palette.dash(name), "width": 2}
                shown = {"showlegend": bool(panel) or x == "servers", "legendgroup": name}
                xs, ys = one[x].to_list(), one["response_s"].to_list()
                made.add(scatter(xs, ys, mode="lines+markers", name=name, line=line, **shown), row=row)
            keys = {
                f"J={20 if x != 'servers' else j}, eta={e if x != 'servers' else 0.2:g}"
                for j in whole.SERVERS
                for e in whole.SHARES
            }
            places = {key: _place(key, x) for key in keys}
            marks = published_marks(outcome, palette, series={series: name for name, series in whole.MEAN.items()})
            for mark in marks:
                kept = [index for index, key in enumerate(mark["x"]) if key in places]
                if kept:
                    mark = {**mark, "x": [places[mark["x"][i]] for i in kept], "y": [mark["y"][i] for i in kept]}
                    mark["text"] = [mark["text"][i] for i in kept]
                    made.add({**mark, "showlegend": bool(panel) or x == "servers"}, row=row)
            made.x(row, title=title).y(row, title="mean response, s")
            log_axis(made, "y", row=row)

        return paint

    painters = {
        "servers": ("a fifth of them fast", painter("servers", "fast_share", 0.2, "servers")),
        "shares": ("20 servers", painter("fast_share", "servers", 20, "share of fast servers")),
    }
    return stack("Composed chains against clients that route", painters, panel, heights=(1.3, 1.3))


def _place(key: str, x: str) -> float:
    servers, share = (part.split("=")[1] for part in key.split(", "))
    return float(servers if x == "servers" else share)


def arrivals(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Share of gaps longer than x beside exponential ones, and the rate over time."""
    curve, rate, gaps = (outcome.tables[name] for name in ("curve", "rate", "gaps"))

    def longer(made: Canvas, row: int) -> None:
        for index, (column, name) in enumerate(
            (("longer", gaps["trace"][0]), ("exponential", "exponential, same mean"))
        ):
            part = curve.filter(pl.col(column) > 1e-5)
            line = {"color": COLOURS[index], "dash": DASHES[index], "width": 2}
            x, y = part["gap_s"].to_list(), part[column].to_list()
            made.add(scatter(x, y, mode="lines", name=name, line=line), row=row)
        made.x(row, title="gap, s").y(row, title="share of gaps that are longer")
        log_axis(made, "x", "y", row=row)

    def over_time(made: Canvas, row: int) -> None:
        line = {"color": COLOURS[0], "width": 1.2, "shape": "hv"}
        x, y = rate["time_s"].to_list(), rate["rate_per_s"].to_list()
        made.add(scatter(x, y, mode="lines", name="rate", line=line, showlegend=False), row=row)
        mean = 1 / gaps["mean_s"][0]
        made.line(y=mean, row=row, color=GREY, dash="dash", width=1.2)
        made.x(row, title="time, s").y(row, title="requests/s", rangemode="tozero")

    painters = {
        "gaps": ("gaps between arrivals", longer),
        "rate": (f"windows of {outcome.parameters['window_s']:g} s; dashed: the mean", over_time),
    }
    return stack("Are arrivals Poisson?", painters, panel)


def bursts(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Mean response of whole models and of chains beside Theorem 4, and the distributions of the simulated response."""
    ends, means, paths = (outcome.tables.get(name) for name in ("bounds", "means", "paths"))
    parameters, palette = outcome.parameters, Palette(bursty.SYSTEMS)
    bounded = parameters["gaps_cv"] == 1 and not parameters["contention"]
    curve = "bounds of Theorem 4" if bounded else "Poisson/exp reference"

    def mean(made: Canvas, row: int) -> None:
        for system, low, high in () if ends is None else _first(ends).select("system", "lower_s", "upper_s").rows():
            line = {"color": palette.colour(system), "width": 9}
            look = {"mode": "lines", "name": f"{curve}, {system}", "line": line, "opacity": 0.45}
            made.add(scatter([system] * 2, [low, high], **look), row=row)
        for system, seconds in () if means is None else _first(means).select("system", "response_s").rows():
            mark = {"color": palette.colour(system), "symbol": SYMBOLS["compiled"], "size": 11}
            made.add(scatter([system], [seconds], mode="markers", name=f"simulated, {system}", marker=mark), row=row)
        made.x(row, type="category", categoryorder="array", categoryarray=list(bursty.SYSTEMS), range=[-0.5, 1.5])
        made.y(row, title="mean response, s", rangemode="tozero")

    def distributions(made: Canvas, row: int) -> None:
        for (system,), part in () if paths is None else _first(paths).group_by("system", maintain_order=True):
            line = {"color": palette.colour(system), "dash": palette.dash(system), "width": 2}
            x, y = part["response_s"].to_list(), part["share"].to_list()
            made.add(scatter(x, y, mode="lines", name=f"jobs, {system}", line=line), row=row)
        made.x(row, title="response, s").y(row, title="share of jobs done", range=[0, 1.02])
        log_axis(made, "x", row=row, span=made.extent("x", row) or ANY_S)

    kind = "jobs slow each other down" if parameters["contention"] else "service takes its nominal time"
    rate = f"{parameters['arrival_rate_per_s']:.3g} jobs/s, CV of the gaps {parameters['gaps_cv']:.3g}"
    painters = {"means": (f"{kind}; {rate}", mean), "distributions": ("simulated", distributions)}
    return stack("Whole models or chains under bursts", painters, panel, heights=(1.1, 1.2))


def _first(table: pl.DataFrame) -> pl.DataFrame:
    """The first replication."""
    return table.filter(pl.col("replication") == 0)


def service_times(outcome: Outcome, _: str | None = None) -> Canvas:
    """Distribution of service times on the first chains beside an exponential one."""
    table, spread = outcome.tables["curves"], outcome.tables["chains"]
    made = figure("Are service times exponential?", "service time, s", "share of requests done")
    names = table["series"].unique(maintain_order=True).to_list()
    palette = Palette(names)
    ratios = {f"chain {chain}": value for chain, value in spread.select("chain", "spread").rows()}
    for name in names:
        part = table.filter(pl.col("series") == name)
        text = f"{name}: std/mean {ratios[name]:.2f}" if name in ratios else f"{name} of the first mean"
        line = {"color": palette.colour(name), "dash": palette.dash(name), "width": 2}
        made.add(scatter(part["service_s"].to_list(), part["share"].to_list(), mode="lines", name=text, line=line))
    return made.y(range=[0, 1.02])


def table(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Means beside the published ones, distributions of the response, and both models of service side by side."""
    metrics, paths = outcome.tables["metrics"], outcome.tables.get("paths")
    palette = Palette(tab1.SYSTEMS)
    parts = {"waiting mean": "waiting", "service mean": "service"}

    def means(made: Canvas, row: int) -> None:
        first = metrics.filter(pl.col("backend") == metrics["backend"][0])
        for index, (metric, name) in enumerate(parts.items()):
            part = first.filter(pl.col("metric") == metric).group_by("system", maintain_order=True)
            part = part.agg(pl.col("seconds").mean())
            printed = outcome.published.filter(pl.col("series") == metric)
            for who, source, opacity in (("ours", part, 1.0), ("published", printed, 0.4)):
                column = ("system", "seconds") if who == "ours" else ("x", "value")
                systems = [f"{system}<br>{who}" for system in source[column[0]]]
                look = {"color": COLOURS[index], "opacity": opacity, "pattern": {"shape": "" if who == "ours" else "/"}}
                y = source[column[1]].to_list()
                made.add(bar(systems, y, name=f"{name}, {who}", marker=look), row=row)
        order = [f"{system}<br>{who}" for system in tab1.SYSTEMS for who in ("ours", "published")]
        made.set(barmode="stack")
        made.x(row, type="category", categoryorder="array", categoryarray=order)
        made.y(row, title="seconds, mean")

    def distributions(made: Canvas, row: int) -> None:
        for name in tab1.SYSTEMS if paths is not None else ():
            part = _first(paths).filter(pl.col("system") == name).sort("share")
            line = {"color": palette.colour(name), "dash": palette.dash(name), "width": 2}
            x, y = part["response_s"].to_list(), part["share"].to_list()
            made.add(scatter(x, y, mode="lines", name=name, line=line), row=row)
        made.x(row, title="response, s").y(row, title="share of requests", range=[0, 1])
        log_axis(made, "x", row=row)

    def draws(made: Canvas, row: int) -> None:
        part = metrics.filter((pl.col("metric") == "response mean") & (pl.col("backend") == metrics["backend"][0]))
        for name in (tab1.WHOLE, tab1.PROPOSED):
            one = part.filter(pl.col("system") == name).group_by("draw").agg(pl.col("seconds").mean()).sort("draw")
            look = {"color": palette.colour(name), "pattern": {"shape": pattern("")}}
            x, y = [str(number + 1) for number in one["draw"]], one["seconds"].to_list()
            shown = {"showlegend": panel == "draws", "legendgroup": name, "offsetgroup": name}
            made.add(bar(x, y, name=name, marker=look, **shown), row=row)
        made.x(row, title="draw of sites", type="category").y(row, title="mean response, s", rangemode="tozero")

    kind = "jobs slow each other down" if outcome.parameters["contention"] else "service takes its nominal time"
    painters = {
        "means": (f"{kind}; pale: published", means),
        "distributions": ("first draw", distributions),
        "draws": ("whole models and chains, draw by draw", draws),
    }
    made = stack("Nine slices, LLaMA-2-7B, Azure trace", painters, panel, heights=(1.3, 1.2, 0.9))
    return made.set(barmode="group") if panel == "draws" else made
