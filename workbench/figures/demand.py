"""What a trace asks for over time: λScale's Figure 1, BlitzScale's Figures 1 and 4."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.fig1 import KV
from workbench.catalogue.lambdascale.fig1 import MINUTE
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, GREY, SYMBOLS, WORDS, Palette, log_axis, published_marks
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack

SHOWN = 1200
"""Most points a line is drawn with; of more, the largest of every few."""


def _line(x: Sequence[float], y: Sequence[float], name: str, place: int, **settings: object) -> Trace:
    line = {"color": COLOURS[place], "width": 1.3, "shape": "hv"}
    return scatter(list(x), list(y), mode="lines", name=name, line=line, **settings)


def _thin(x: pl.Series, y: pl.Series) -> tuple[list[float], list[float]]:
    """The largest value of every few, so that no peak is lost."""
    group = -(-len(x) // SHOWN)
    starts = np.arange(0, len(x), group)
    return x.to_numpy()[starts].tolist(), np.maximum.reduceat(y.to_numpy(), starts).tolist()


def _mark(colour: str, backend: str, size: int) -> dict[str, object]:
    return {"size": size, "color": colour, "symbol": SYMBOLS[backend], "line": {"width": 2, "color": colour}}


def provisioned(outcome: Outcome, panel: str | None = None) -> Canvas:
    """λScale Figure 1: request rate, arrivals by minute, and instances in use under the flat provisioned line."""
    table, minutes = outcome.tables["rate"], outcome.tables["minutes"]
    summary = outcome.tables["provision"].row(0, named=True)

    def rate(made: Canvas, row: int) -> None:
        made.add(_line(table["time_s"], table["rate_per_s"], "request rate", 0), row=row)
        mean = summary["requests"] / summary["span_s"]
        made.line(y=mean, row=row, color=GREY, dash="dot", width=1.5)
        made.x(row, title="time, s").y(row, title="requests/s (dotted: mean)", rangemode="tozero")

    def by_minute(made: Canvas, row: int) -> None:
        colour = {"color": COLOURS[0], "opacity": 0.75}
        made.add(
            bar(minutes["minute"].to_list(), minutes["arrivals"].to_list(), name="arrivals", marker=colour), row=row
        )
        for trace in published_marks(outcome, Palette(["none", MINUTE]), series={MINUTE: MINUTE}):
            short = trace["name"].replace(MINUTE, "the artifact's trace")
            made.add({**trace, "name": short, "marker": {**trace["marker"], "size": 8}}, row=row)
        made.x(row, title="minute").y(row, title="arrivals in the minute", rangemode="tozero")

    def instances(made: Canvas, row: int) -> None:
        made.add(_line(table["time_s"], table["instances"], "instances kept busy", 1), row=row)
        span, flat = [0, summary["span_s"]], [summary["provisioned"]] * 2
        style = {"color": COLOURS[4], "dash": "dash", "width": 2}
        made.add(scatter(span, flat, mode="lines", name="provisioned for the peak", line=style), row=row)
        made.x(row, title="time, s").y(row, title="instances", rangemode="tozero")

    window = outcome.parameters["window_s"]
    painters = {
        "rate": (f"{summary['trace']}, over windows of {window:g} s", rate),
        "minutes": ("by minute", by_minute),
        "instances": (f"a request holds an instance for {outcome.parameters['service_s']:g} s", instances),
    }
    return stack("Load and what is provisioned for it", painters, panel)


def burst(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 1: request rate, FLOP/s of prefill and KV bytes of decode, second by second."""
    table, summary = outcome.tables["demand"], outcome.tables["summary"].row(0, named=True)
    last = float(table["time_s"][-1]) * 1.02

    def drawn(column: str, title: str, place: int, scale: float = 1.0):
        def paint(made: Canvas, row: int) -> None:
            x, y = _thin(table["time_s"], table[column] * scale)
            made.add(_line(x, y, title.split(",")[0], place, showlegend=False), row=row)
            made.x(row, title="time, s", range=[0, last]).y(row, title=title, rangemode="tozero")

        return paint

    def kv(made: Canvas, row: int) -> None:
        drawn("kv_bytes", "KV cache, GB", 2, 1e-9)(made, row)
        made.line(y=summary["instance_bytes"] / 1e9, row=row, color=GREY, dash="dash", width=1.5)
        place = {"": last * 0.99}
        for trace in published_marks(outcome, Palette(["a", "b", KV]), series={KV: KV}, x=place):
            values = {"y": [value / 1e9 for value in trace["y"]]}
            if "error_y" in trace:
                edges = {side: [edge / 1e9 for edge in trace["error_y"][side]] for side in ("array", "arrayminus")}
                values["error_y"] = {**trace["error_y"], **edges}
            made.add({**trace, **values}, row=row)
        made.y(row, title="KV cache, GB (dashed: one instance)")

    where = f"{summary['trace']}, {outcome.parameters['upscale']} times its rate"
    painters = {
        "rate": (where, drawn("rate_per_s", "requests/s", 0)),
        "flops": ("prefill of what arrives in the second", drawn("flops_per_s", "PFLOP/s", 1, 1e-15)),
        "kv": ("held by requests in decode", kv),
    }
    return stack("What a burst asks for", painters, panel)


def misses(outcome: Outcome, panel: str | None = None) -> Canvas:
    """BlitzScale Figure 4: instances needed, starts that miss the host cache, and the miss share by keep-alive."""
    seconds, keep, parameters = outcome.tables["seconds"], outcome.tables.get("keep"), outcome.parameters
    summary = outcome.tables["summary"]
    first = seconds.filter(pl.col("backend") == seconds["backend"][0])

    def instances(made: Canvas, row: int) -> None:
        made.add(_line(*_thin(first["time_s"], first["need"]), "instances needed", 0), row=row)
        made.x(row, title="time, s", range=[0, len(first)]).y(row, title="instances", rangemode="tozero")

    def missed(made: Canvas, row: int) -> None:
        marks = {"size": 5, "color": GREY, "opacity": 0.6}
        hit = first.with_columns(hits=pl.col("started") - pl.col("missed")).filter(pl.col("hits") > 0)
        x, y = hit["time_s"].to_list(), hit["hits"].to_list()
        made.add(scatter(x, y, mode="markers", name="starts from a kept copy", marker=marks), row=row)
        for (backend,), part in seconds.filter(pl.col("missed") > 0).group_by("backend", maintain_order=True):
            mark = _mark(COLOURS[4], backend, 6 if backend == "analytic" else 11)
            x, y = part["time_s"].to_list(), part["missed"].to_list()
            made.add(scatter(x, y, mode="markers", name=f"misses ({WORDS[backend]})", marker=mark), row=row)
        made.x(row, title="time, s", range=[0, len(first)]).y(row, title="instances started", rangemode="tozero")

    def by_keep(made: Canvas, row: int) -> None:
        if keep is not None:
            line = {"color": COLOURS[1], "width": 2}
            name = f"{summary['trace'][0]} (formula)"
            x, y = keep["keep_s"].to_list(), keep["share"].to_list()
            made.add(scatter(x, y, mode="lines+markers", name=name, line=line), row=row)
        for backend, share in summary.filter(pl.col("backend") == "simpy").select("backend", "share").rows():
            mark = _mark(COLOURS[1], backend, 12)
            name = f"{summary['trace'][0]} ({WORDS[backend]})"
            made.add(scatter([parameters["keep_s"]], [share], mode="markers", name=name, marker=mark), row=row)
        _published(made, row, outcome)
        made.x(row, title="hosts keep a copy for, s").y(row, title="misses over starts", rangemode="tozero")
        log_axis(made, "x", row=row)

    painters = {
        "instances": (summary["trace"][0], instances),
        "misses": (f"copies kept for {parameters['keep_s']} s", missed),
        "keep": ("share of misses by keep-alive", by_keep),
    }
    return stack("Instances scaled and host-cache misses", painters, panel)


def _published(made: Canvas, row: int, outcome: Outcome) -> None:
    """Bands at five minutes, each under the name of its trace."""
    for one in outcome.published.filter(pl.col("x").is_in(["BurstGPT", "AzureCode", "AzureConv"])).to_dicts():
        middle, half = (one["low"] + one["high"]) / 2, (one["high"] - one["low"]) / 2
        kind = "own calculation" if one["kind"] == "computed" else one["kind"]
        made.add(
            scatter(
                [300],
                [middle],
                mode="markers",
                name=f"{one['x']} ({kind})",
                marker={"symbol": "diamond-open", "size": 11, "color": GREY, "line": {"width": 2}},
                error_y={"type": "data", "array": [half], "color": GREY},
                text=[f"{one['low']:.2%} to {one['high']:.2%}<br>{one['source']}"],
                hovertemplate="%{text}<extra>%{fullData.name}</extra>",
            ),
            row=row,
        )
