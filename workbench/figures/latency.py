"""Step times: curves by source, and errors against measurements."""

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


def validation(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Median errors by GPU and kernel, by size for one of them, and by layer, with the targets as dotted lines."""
    kernels, layers, parameters = outcome.tables["kernels"], outcome.tables["layers"], outcome.parameters
    chosen = kernels.filter(pl.col("format") == parameters["format"])

    def bars(made: Canvas, row: int, labels: list[str], part: pl.DataFrame, first: bool) -> None:
        for way, target in TARGETS.items():
            made.add(
                bar(
                    labels,
                    (part[f"{way}_error"] * 100).to_list(),
                    name=f"{way} (target {target:.0%})",
                    marker={"color": SHADES[way]},
                    legendgroup=way,
                    showlegend=first,
                    customdata=[f"signed {value:+.1%}" for value in part[f"{way}_signed"]],
                    hovertemplate="%{x}: %{y:.1f} %<br>%{customdata}<extra>%{fullData.name}</extra>",
                ),
                row=row,
            )
            made.line(y=target * 100, row=row, color=SHADES[way], dash="dot", width=1)
        made.y(row, title="median error, %", rangemode="tozero").x(row, tickangle=-25).set(barmode="group")

    def by_kernel(made: Canvas, row: int) -> None:
        part = chosen.filter(WHOLE)
        labels = [f"{item['accelerator'].split('-')[0]}<br>{item['kernel']}" for item in part.to_dicts()]
        bars(made, row, labels, part, True)
        made.add(*published_marks(outcome, Palette()), row=row)

    def by_size(made: Canvas, row: int) -> None:
        part = chosen.filter(
            (pl.col("accelerator") == parameters["accelerator"])
            & (pl.col("kernel") == parameters["kernel"])
            & (pl.col("size") != "all")
        )
        labels = [f"{item['shape']}<br>{item['size']}" for item in part.to_dicts()]
        if labels:
            bars(made, row, labels, part, panel == "sizes")
        else:
            made.y(row, title="median error, %").note(
                "not measured in this format", xref="paper", yref=f"y{row if row > 1 else ''}", x=0.5, y=0.5
            )

    def by_layer(made: Canvas, row: int) -> None:
        part = layers.filter(EVERY_TP)
        labels = [f"{item['accelerator'].split('-')[0]}<br>{item['model']}" for item in part.to_dicts()]
        bars(made, row, labels, part, panel == "layers")

    painters = {
        "kernels": (f"kernels in {parameters['format']}, on rows nothing was fitted to", by_kernel),
        "sizes": (f"{parameters['accelerator']}, {parameters['kernel']}, by shape and size", by_size),
        "layers": ("whole layers in bf16, a model or TP held out", by_layer),
    }
    return stack("Step times against measurements", painters, panel, heights=(1.1, 1.1, 1.1))


def tpot(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Median errors of TPOT by group of servers, and every point predicted against measured."""
    servers, points = outcome.tables["servers"], outcome.tables.get("points")
    held = servers.filter(~pl.col("reported_only"))
    names = [name_of_group(row) for row in held.to_dicts()]
    palette = Palette(names)

    def errors(made: Canvas, row: int) -> None:
        for index, (way, (words, _)) in enumerate(WAYS.items()):
            values = (held[f"{way}_error"] * 100).to_list()
            made.add(
                bar(values, names, orientation="h", name=words, marker={"color": COLOURS[index]}),
                row=row,
            )
        made.line(x=10, row=row, color=GREY, dash="dot", width=1).line(x=15, row=row, color=GREY, dash="dash", width=1)
        made.x(row, title="median error, % (dotted: target in sample; dashed: held out)")
        made.y(row, autorange="reversed", dtick=1).set(barmode="group")
        made.add(*published_marks(outcome, Palette()), row=row)

    def against(made: Canvas, row: int) -> None:
        if points is None:
            made.note("the points themselves need WORKBENCH_DATA", xref="paper", yref="paper", x=0.5, y=0.1)
            made.x(row, title="measured, ms").y(row, title="predicted, ms")
            return
        for key, part in points.group_by("model", "precision", "accelerator", "engine", maintain_order=True):
            name = name_of_group(dict(zip(("model", "precision", "accelerator", "engine"), key, strict=True)))
            x, y = (part["measured_s"] * 1e3).to_list(), (part["predicted_s"] * 1e3).to_list()
            mark = {"color": palette.colour(name), "size": 5, "symbol": "diamond-open"}
            made.add(scatter(x, y, mode="markers", name=name, marker=mark), row=row)
        low, high = points["measured_s"].min() * 1e3, points["measured_s"].max() * 1e3
        line = {"color": GREY, "dash": "dot"}
        made.add(scatter([low, high], [low, high], mode="lines", name="equal", line=line), row=row)
        made.x(row, title="measured, ms").y(row, title="predicted, ms")
        log_axis(made, "x", "y", row=row)

    painters = {
        "errors": ("median error by group", errors),
        "points": (f"every point, {outcome.parameters['held_out']}", against),
    }
    return stack("Time per output token of whole servers", painters, panel, heights=(2.0, 1.6))
