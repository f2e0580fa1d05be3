"""Step times: curves by source, and errors against measurements."""

import re

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.catalogue.theory.latency_validation import EVERY_TP, TARGETS, WHOLE
from workbench.catalogue.theory.step_time import BOUND
from workbench.catalogue.theory.tpot_validation import WAYS, name_of_group
from workbench.figures.base import COLOURS, GREY, Palette, log_axis, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import Painter, stack

SHADES = {"fitted": COLOURS[0], "roofline": COLOURS[1]}
ENGINES = (COLOURS[3], GREY, COLOURS[5])


def _short(accelerator: str) -> str:
    """h100-80gb-sxm is h100, rtx-4090-24gb is rtx-4090."""
    return re.sub(r"-\d+gb.*", "", accelerator)


def step_time(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Milliseconds of a decode step against the batch, and of a prefill against its tokens, one line a source."""
    parameters = outcome.parameters
    names = outcome.tables["decode"]["source"].unique(maintain_order=True).to_list()
    palette = Palette([name for name in names if name != BOUND])

    def painter(phase: str, key: str, title: str) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            for (name,), part in outcome.tables[phase].group_by("source", maintain_order=True):
                line = {"color": GREY, "dash": "dot", "width": 1.5}
                if name != BOUND:
                    line = {"color": palette.colour(name), "dash": palette.dash(name), "width": 2}
                made.add(
                    scatter(
                        part[key].to_list(),
                        (part["seconds"] * 1e3).to_list(),
                        mode="lines",
                        name=name,
                        line=line,
                        legendgroup=name,
                        showlegend=row == 1,
                        text=["outside its fitted range" if out else "" for out in part["outside_fitted_range"]],
                        hovertemplate="%{x}: %{y:.4g} ms %{text}<extra>%{fullData.name}</extra>",
                    ),
                    row=row,
                )
            made.line(
                x=parameters["batch" if phase == "decode" else "tokens"], row=row, color=GREY, dash="dot", width=1
            )
            made.x(row, title=title).y(row, title="milliseconds")
            log_axis(made, "x", "y", row=row)

        return paint

    painters = {
        "decode": (
            f"decode, {parameters['context_tokens']:,} tokens of context each",
            painter("decode", "batch", "requests in the batch"),
        ),
        "prefill": ("prefill of one prompt", painter("prefill", "tokens", "new tokens")),
    }
    about = f"{name_of(parameters['model'])} on {name_of(parameters['accelerator'])}, TP {parameters['tp']}"
    return stack(about, painters, panel)


def _errors(made: Canvas, row: int, labels: list[str], values, signed, name: str, shade: str, **options) -> None:
    """Horizontal bars of median |error| in percent; the sign shows on hovering."""
    signs = [f"signed {value:+.1%}" if value is not None else "" for value in signed]
    percent = [None if value is None else value * 100 for value in values]
    made.add(
        bar(
            percent,
            labels,
            orientation="h",
            name=name,
            marker={"color": shade},
            legendgroup=name,
            customdata=signs,
            hovertemplate="%{y}: %{x:.1f} %, %{customdata}<extra>%{fullData.name}</extra>",
            **options,
        ),
        row=row,
    )


def _percent_axes(made: Canvas, row: int, title: str) -> None:
    made.x(row, title=title, rangemode="tozero")
    made.y(row, autorange="reversed", dtick=1, ticklabelstandoff=6).set(barmode="group")


def validation(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Median errors by GPU and kernel, by size for one of them, and by layer, with the targets as dotted lines."""
    kernels, layers, parameters = outcome.tables["kernels"], outcome.tables["layers"], outcome.parameters
    chosen = kernels.filter(pl.col("format") == parameters["format"])

    def bars(made: Canvas, row: int, labels: list[str], part: pl.DataFrame, first: bool) -> None:
        for way, target in TARGETS.items():
            name = f"{way} (target {target:.0%})"
            values, signed = part[f"{way}_error"].to_list(), part[f"{way}_signed"].to_list()
            _errors(made, row, labels, values, signed, name, SHADES[way], showlegend=first)
            made.line(x=target * 100, row=row, color=SHADES[way], dash="dot", width=1)
        _percent_axes(made, row, "median error, %")

    def by_kernel(made: Canvas, row: int) -> None:
        part = chosen.filter(WHOLE)
        labels = [f"{item['kernel']}, {_short(item['accelerator'])}" for item in part.to_dicts()]
        bars(made, row, labels, part, True)
        made.add(*published_marks(outcome, Palette()), row=row)

    def by_size(made: Canvas, row: int) -> None:
        part = chosen.filter(
            (pl.col("accelerator") == parameters["accelerator"])
            & (pl.col("kernel") == parameters["kernel"])
            & (pl.col("size") != "all")
        )
        labels = [f"{item['shape']}, {item['size']}" for item in part.to_dicts()]
        if labels:
            bars(made, row, labels, part, panel == "sizes")
        else:
            made.x(row, title="median error, %").note(
                "not measured in this format", xref="paper", yref=f"y{row if row > 1 else ''}", x=0.5, y=0.5
            )

    def by_layer(made: Canvas, row: int) -> None:
        part = layers.filter(EVERY_TP)
        labels = [f"{item['model']}, {_short(item['accelerator'])}" for item in part.to_dicts()]
        bars(made, row, labels, part, panel == "layers")

    painters = {
        "kernels": (f"kernels in {parameters['format']}, on rows nothing was fitted to", by_kernel),
        "sizes": (f"{parameters['accelerator']}, {parameters['kernel']}, by shape and size", by_size),
        "layers": ("whole layers in bf16, a model or TP held out", by_layer),
    }
    return stack("Step times against measurements", painters, panel, heights=(2.0, 1.4, 1.2))


def tpot(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Median errors of TPOT by group of servers, and every point predicted against measured, coloured by engine."""
    servers, points = outcome.tables["servers"], outcome.tables.get("points")
    held = servers.filter(~pl.col("reported_only"))
    names = [name_of_group(row).replace(" on ", "<br>on ") for row in held.to_dicts()]

    def errors(made: Canvas, row: int) -> None:
        for index, (way, (words, _)) in enumerate(WAYS.items()):
            values, signed = held[f"{way}_error"].to_list(), held[f"{way}_signed"].to_list()
            _errors(made, row, names, values, signed, words, COLOURS[index])
        made.line(x=10, row=row, color=GREY, dash="dot", width=1).line(x=15, row=row, color=GREY, dash="dash", width=1)
        _percent_axes(made, row, "median error, %")
        made.add(*published_marks(outcome, Palette()), row=row)

    def against(made: Canvas, row: int) -> None:
        if points is None:
            made.note("the points themselves need WORKBENCH_DATA", xref="paper", yref="paper", x=0.5, y=0.1)
            made.x(row, title="measured, ms").y(row, title="predicted, ms")
            return
        for index, ((engine,), part) in enumerate(points.group_by("engine", maintain_order=True)):
            group = ["model", "precision", "accelerator", "engine"]
            hover = [name_of_group(item) for item in part.select(group).to_dicts()]
            mark = {"color": ENGINES[index % len(ENGINES)], "size": 5, "symbol": "diamond-open"}
            made.add(
                scatter(
                    (part["measured_s"] * 1e3).to_list(),
                    (part["predicted_s"] * 1e3).to_list(),
                    mode="markers",
                    name=engine,
                    marker=mark,
                    text=hover,
                    hovertemplate="%{text}: %{x:.3g} ms measured, %{y:.3g} ms predicted<extra></extra>",
                ),
                row=row,
            )
        low, high = points["measured_s"].min() * 1e3, points["measured_s"].max() * 1e3
        line = {"color": GREY, "dash": "dot"}
        made.add(scatter([low, high], [low, high], mode="lines", name="equal", line=line), row=row)
        made.x(row, title="measured, ms").y(row, title="predicted, ms")
        log_axis(made, "x", "y", row=row)

    painters = {
        "errors": ("median error by group; targets: dotted in sample, dashed held out", errors),
        "points": (f"every point, {outcome.parameters['held_out']}", against),
    }
    return stack("Time per output token of whole servers", painters, panel, heights=(2.4, 1.6))
