"""BlitzScale's evaluation: latencies, GPUs over time, GPU time, times of starts, who was harmed (Figures 17 to 24)."""

import re

import polars as pl

from workbench.catalogue.blitzscale.fig22 import WITH, WITHOUT
from workbench.catalogue.blitzscale.fig23 import IN_TIME
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import INK, Palette, figure, log_axis, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import Painter, stack


def _names(table: pl.DataFrame) -> list[str]:
    return table["system"].unique(maintain_order=True).to_list()


def _line(palette: Palette, name: str) -> dict[str, object]:
    return {"color": palette.colour(name), "dash": palette.dash(name), "width": 2}


def _spread(part: pl.DataFrame, column: str, by: str) -> pl.DataFrame:
    """Mean, least and largest of a column over runs."""
    return part.group_by(by, maintain_order=True).agg(
        mean=pl.col(column).mean(), low=pl.col(column).min(), high=pl.col(column).max()
    )


def _bars(found: pl.DataFrame, by: str, name: str, colour: str, *, legend: bool = True, shape: str = "") -> dict:
    """Bars of means with the range over runs."""
    spread = {"type": "data", "symmetric": False, "color": INK,
              "array": (found["high"] - found["mean"]).to_list(),
              "arrayminus": (found["mean"] - found["low"]).to_list()}  # fmt: skip
    return bar(
        found[by].to_list(), found["mean"].to_list(), name=name, error_y=spread, showlegend=legend,
        marker={"color": colour, "pattern": {"shape": shape}},
    )  # fmt: skip


def cdf(outcome: Outcome, palette: Palette, what: str, workload: str, *, legend: bool) -> Painter:
    """Distribution of TTFT or TBT: mean over runs of each quantile."""

    def paint(made: Canvas, row: int) -> None:
        table = outcome.tables["cdf"].filter((pl.col("what") == what) & (pl.col("workload") == workload))
        mean = table.group_by("system", "share", maintain_order=True).agg(pl.col("seconds").mean())
        for name in _names(mean):
            part = mean.filter(pl.col("system") == name)
            x, y = part["seconds"].to_list(), (part["share"] * 100).to_list()
            made.add(scatter(x, y, mode="lines", name=name, line=_line(palette, name), showlegend=legend), row=row)
        unit = "requests" if what == "TTFT" else "tokens"
        made.x(row, title=f"{what}, s").y(row, title=f"% of {unit}", range=[0, 101])
        log_axis(made, "x", row=row)

    return paint


def gpus(outcome: Outcome, palette: Palette, workload: str, *, legend: bool) -> Painter:
    """GPUs held over the first run."""

    def paint(made: Canvas, row: int) -> None:
        table = outcome.tables["gpus"].filter((pl.col("replication") == 0) & (pl.col("workload") == workload))
        for name in _names(table):
            part = table.filter(pl.col("system") == name)
            line = {**_line(palette, name), "shape": "hv", "width": 1.8}
            x, y = part["time_s"].to_list(), part["gpus"].to_list()
            made.add(scatter(x, y, mode="lines", name=name, line=line, showlegend=legend), row=row)
        made.x(row, title="seconds of the first run").y(row, title="GPUs held", rangemode="tozero")

    return paint


def _in_lines(names: list[str]) -> dict[str, object]:
    """Ticks of systems in short lines, which a narrow page need not turn; of many also within words, and smaller."""
    many = len(names) > 4
    where = r", |(?= \()|(?<=[a-z])(?=[A-Z])" if many else ", "
    texts = [re.sub(where, lambda found: f"{found[0].rstrip()}<br>", name) for name in names]
    return {"tickvals": names, "ticktext": texts, "tickangle": 0, **({"tickfont": {"size": 10}} if many else {})}


def gpu_time(outcome: Outcome, palette: Palette) -> Painter:
    """GPU time held and active over that of a full provisioning."""

    def paint(made: Canvas, row: int) -> None:
        table = outcome.tables["totals"]
        for column, name, shape in (("held", "held", ""), ("active", "active", "/")):
            found = _spread(table, column, "system")
            made.add(_bars(found, "system", f"GPU time {name}", palette.colour(_names(table)[0]), shape=shape), row=row)
        made.x(row, **_in_lines(_names(table))).set(barmode="group")
        made.y(row, title="over that of all instances", rangemode="tozero")

    return paint


TIMES = {"detected_s": "detected", "extra_s": "first extra work", "alone_s": "alone"}
HARM = {"harmed_s": "ran when a start began, during it", "unharmed_s": "all others"}


def _grouped(outcome: Outcome, workload: str, columns: dict[str, str], title: str, palette: Palette) -> Painter:
    """Bars by system, one of each column."""

    def paint(made: Canvas, row: int) -> None:
        table = outcome.tables["totals"].filter(pl.col("workload") == workload)
        for column, name in columns.items():
            found = _spread(table.filter(pl.col(column).is_not_nan()), column, "system")
            made.add(_bars(found, "system", name, palette.colour(name)), row=row)
        made.x(row, **_in_lines(_names(table))).set(barmode="group").y(row, title=title, rangemode="tozero")

    return paint


def starts(outcome: Outcome, workload: str) -> Painter:
    """Mean seconds from need until a start was detected, did its first extra work, and served alone."""
    names = _names(outcome.tables["totals"])  # their colours are taken
    return _grouped(outcome, workload, TIMES, "s since needed", Palette([*names, *TIMES.values()]))


def harm(outcome: Outcome, workload: str) -> Painter:
    """P99 of TBT of requests that ran already when an instance was started, during the start, and of all others."""
    names = _names(outcome.tables["totals"])
    return _grouped(outcome, workload, HARM, "P99 of TBT, s", Palette([*names, *HARM.values()]))


def fig18(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 18: latency, GPUs, GPU time, starts and harm."""
    names = _names(outcome.tables["totals"])
    palette, workload = Palette(names), outcome.tables["totals"]["workload"][0]
    alone = panel is not None
    painters = {
        "ttft": ("time to the first token", cdf(outcome, palette, "TTFT", workload, legend=True)),
        "tbt": ("time between tokens", cdf(outcome, palette, "TBT", workload, legend=alone)),
        "gpus": ("GPUs held over time", gpus(outcome, palette, workload, legend=alone)),
        "time": ("GPU time, mean and range over runs", gpu_time(outcome, palette)),
        "starts": ("starts: three times since one was needed, means", starts(outcome, workload)),
        "harm": ("who was harmed while instances started", harm(outcome, workload)),
    }
    return stack(f"Latency and GPU time, {workload}", painters, panel)


def over_time(outcome: Outcome, palette: Palette, workload: str, *, legend: bool) -> Painter:
    """Mean TTFT of the requests that came in each second of the first run."""

    def paint(made: Canvas, row: int) -> None:
        table = outcome.tables["over"].filter((pl.col("replication") == 0) & (pl.col("workload") == workload))
        for name in _names(table):
            part = table.filter((pl.col("system") == name) & pl.col("TTFT").is_not_null())
            x, y = part["time_s"].to_list(), part["TTFT"].to_list()
            made.add(scatter(x, y, mode="lines", name=name, line=_line(palette, name), showlegend=legend), row=row)
        made.x(row, title="seconds of the first run").y(row, title="mean TTFT, s", rangemode="tozero")

    return paint


def rate(outcome: Outcome, workload: str) -> Painter:
    """Requests that came in each second of the first run."""

    def paint(made: Canvas, row: int) -> None:
        table = outcome.tables["over"].filter((pl.col("replication") == 0) & (pl.col("workload") == workload))
        part = table.filter(pl.col("system") == table["system"][0])  # all systems serve the same requests
        x, y = part["time_s"].to_list(), part["requests"].to_list()
        line = {"color": INK, "width": 1.6, "shape": "hv"}
        made.add(scatter(x, y, mode="lines", name="requests", line=line, showlegend=False), row=row)
        made.x(row, title="seconds of the first run").y(row, title="requests/s", rangemode="tozero")

    return paint


def fig17(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 17: requests and TTFT over time, latencies, starts and harm, by workload.

    The whole figure has requests and TTFT only.
    """
    names = _names(outcome.tables["totals"])
    palette, alone, painters = Palette(names), panel is not None, {}
    for index, name in enumerate(outcome.parameters["workloads"]):
        first = index == 0 or alone
        painters |= {
            f"rate {name}": (f"{name}: requests over time", rate(outcome, name)),
            f"time {name}": (f"{name}: TTFT over time", over_time(outcome, palette, name, legend=first)),
            f"ttft {name}": (f"{name}: TTFT", cdf(outcome, palette, "TTFT", name, legend=alone)),
            f"tbt {name}": (f"{name}: TBT", cdf(outcome, palette, "TBT", name, legend=alone)),
            f"starts {name}": (f"{name}: starts, times since needed", starts(outcome, name)),
            f"harm {name}": (f"{name}: who was harmed while instances started", harm(outcome, name)),
        }
    if not alone:
        painters = {name: one for name, one in painters.items() if name.split(" ")[0] in ("rate", "time", "ttft")}
    return stack("TTFT and TBT on three workloads", painters, panel)


def fig20(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 20: P95 of TTFT and of TBT after each step, by workload."""
    table = outcome.tables["totals"]
    palette = Palette(_names(table))

    def steps(what: str) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            for name in _names(table):
                found = _spread(table.filter(pl.col("system") == name), f"{what} P95", "workload")
                legend = what == "TTFT" or panel is not None
                made.add(_bars(found, "workload", name, palette.colour(name), legend=legend), row=row)
            made.set(barmode="group").y(row, title=f"P95 of {what}, s", rangemode="tozero")

        return paint

    painters = {"ttft": ("time to the first token", steps("TTFT")), "tbt": ("time between tokens", steps("TBT"))}
    return stack("What each ingredient adds, mean and range over runs", painters, panel)


def fig22(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 22: share of the network that KV and weights use over the first run, by workload."""
    table = outcome.tables["use"].filter(pl.col("replication") == 0)
    names = {("kv", WITH): f"KV, {WITH}", ("weights", WITH): "weights", ("kv", WITHOUT): f"KV, {WITHOUT}"}
    palette = Palette(names.values())

    def use(workload: str, *, legend: bool) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("workload") == workload)
            for (kind, system), name in names.items():
                one = part.filter((pl.col("kind") == kind) & (pl.col("system") == system))
                x, y = one["time_s"].to_list(), (one["share"] * 100).to_list()
                line = {**_line(palette, name), "shape": "hv"}
                made.add(scatter(x, y, mode="lines", name=name, line=line, showlegend=legend), row=row)
            made.x(row, title="seconds of the first run").y(row, title="% of all cards", rangemode="tozero")

        return paint

    painters = {
        name: (name, use(name, legend=index == 0 or panel is not None))
        for index, name in enumerate(outcome.parameters["workloads"])
    }
    return stack("What the network carries", painters, panel)


def cross(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Reductions of TTFT and TBT for each model, trace and cluster, mean and range over runs."""
    table = outcome.tables["cross"].with_columns(where=pl.format("{}, {}", "model", "trace"))
    clusters = table["cluster"].unique(maintain_order=True).to_list()
    palette = Palette(clusters)

    def gains(what: str) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            for cluster in clusters:
                part = table.filter(pl.col("cluster") == cluster).with_columns(pl.col(what) * 100)
                legend = what == "TTFT" or panel is not None
                found = _spread(part, what, "where")
                made.add(_bars(found, "where", f"cluster {cluster}", palette.colour(cluster), legend=legend), row=row)
            made.set(barmode="group").y(row, title=f"{what} shorter by, %")

        return paint

    painters = {what: (f"{what}: BlitzScale against ServerlessLLM", gains(what)) for what in ("TTFT", "TBT")}
    return stack("Models, traces and clusters crossed", painters, panel)


def fig24(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 24: latency and GPU time where instances do both phases."""
    palette, alone = Palette(_names(outcome.tables["totals"])), panel is not None
    workload = outcome.tables["totals"]["workload"][0]
    painters = {
        "ttft": ("time to the first token", cdf(outcome, palette, "TTFT", workload, legend=True)),
        "tbt": ("time between tokens", cdf(outcome, palette, "TBT", workload, legend=alone)),
        "time": ("GPU time, mean and range over runs", gpu_time(outcome, palette)),
    }
    return stack(f"Both phases on the same instances, {workload}", painters, panel)


def fig23(outcome: Outcome, _: str | None = None) -> Canvas:
    """BlitzScale Figure 23: seconds of a start, stacked, beside what was published."""
    table = outcome.tables["parts"]
    how = pl.col("backend").replace_strict({"torch": ", real run", "recorded": ", recorded run"}, default="")
    table = table.with_columns(pl.concat_str("system", how))
    palette, made = Palette(IN_TIME), figure("What a start is made of", "", "s")
    for part in IN_TIME:
        if (rows := table.filter(pl.col("part") == part)).is_empty():
            continue
        mark = {"color": palette.colour(part)}
        made.add(bar(rows["system"].to_list(), rows["seconds"].to_list(), name=part, marker=mark))
    made.add(*published_marks(outcome, palette, series={"start-up time": "published"}))
    return made.set(barmode="stack")
