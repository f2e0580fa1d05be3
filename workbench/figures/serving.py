"""Serving: a measured run replayed, and what batching gains and costs."""

import textwrap

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, SYMBOLS, WORDS, Palette, curve, log_axis
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

BAND = 0.03
MEASURES = {"E2E": "e2e_s", "TTFT": "ttft_s"}


def replay(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Each request's time, ours over measured, with a band of 3 %; requests that run and wait second by second."""
    requests, server = outcome.tables["requests"], outcome.tables["server"]
    backend = requests["backend"][0]
    palette, changed = Palette(MEASURES), Palette(("E2E", "TTFT", "TPOT"))

    def each(made: Canvas, row: int) -> None:
        largest = max(float(requests[column].max()) for column in ("e2e_s", "measured_e2e_s"))
        for name, column in MEASURES.items():
            made.add(
                scatter(
                    requests[f"measured_{column}"].to_list(),
                    requests[column].to_list(),
                    name=f"{name} of a request ({WORDS[backend]})",
                    mode="markers",
                    marker={"color": palette.colour(name), "symbol": SYMBOLS[backend], "size": 5},
                    text=[
                        f"request {number}: {prompt} + {output} tokens"
                        for number, prompt, output in requests.select(
                            "request_id", "prompt_tokens", "output_tokens"
                        ).rows()
                    ],
                    hovertemplate="%{text}<br>measured %{x:.1f} s, ours %{y:.1f} s<extra></extra>",
                ),
                row=row,
            )
        for factor, name, dash in ((1, "equal", "solid"), (1 - BAND, f"± {BAND:.0%}", "dot"), (1 + BAND, "", "dot")):
            made.add(
                scatter(
                    [0, largest],
                    [0, factor * largest],
                    mode="lines",
                    name=name,
                    showlegend=bool(name),
                    line={"color": GREY, "dash": dash, "width": 1},
                    hoverinfo="skip",
                ),
                row=row,
            )
        made.x(row, title="measured, s", rangemode="tozero").y(row, title="ours, s", rangemode="tozero")

    def state(made: Canvas, row: int) -> None:
        for name, column, colour in (("running", "running", 0), ("waiting", "waiting", 1)):
            for whose, dash in (("ours", "solid"), ("measured", "dot")):
                part = server.filter(pl.col("whose") == whose)
                made.add(
                    scatter(
                        part["time_s"].to_list(),
                        part[column].to_list(),
                        mode="lines",
                        name=f"{name}, {whose}",
                        line={"color": list(map(palette.colour, MEASURES))[colour], "dash": dash, "width": 2},
                    ),
                    row=row,
                )
        made.x(row, title="seconds from the first arrival").y(row, title="requests", rangemode="tozero")

    def changes(made: Canvas, row: int) -> None:
        table = outcome.tables["changes"]
        for measure in table["measure"].unique(maintain_order=True):
            part = table.filter(pl.col("measure") == measure)
            made.add(
                bar(
                    list(range(len(part))),
                    [100 * error for error in part["error"]],
                    name=f"mean {measure}",
                    marker={"color": changed.colour(measure)},
                ),
                row=row,
            )
        for edge in (-BAND, BAND):
            made.line(y=100 * edge, row=row, color=GREY, dash="dot", width=1)
        names = ["<br>".join(textwrap.wrap(name, 11)) for name in table["change"].unique(maintain_order=True)]
        made.x(row, tickvals=list(range(len(names))), ticktext=names, tickangle=0, tickfont={"size": 11})
        made.y(row, title="% over the measured mean")

    painters = {
        "requests": ("each request, ours over measured", each),
        "server": ("requests that run (ours with the evicted ones) and that wait", state),
        "changes": (f"how far the means are off when one thing is changed; dotted: ±{BAND:.0%}", changes),
    }
    return stack("A measured vLLM run, replayed", painters, panel)


def throughput(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Time between tokens against load, and tokens a second against the batch."""
    load, batch = outcome.tables["load"], outcome.tables.get("batch")
    knee = outcome.tables["knee"].row(0, named=True)
    palette = Palette(("time between tokens", "requests at once", "tokens a second"))

    def by_load(made: Canvas, row: int) -> None:
        averaged = load.group_by("backend", "share", maintain_order=True).agg(pl.col("tbt_s", "batch").mean())
        table = averaged.with_columns(tbt_ms=pl.col("tbt_s") * 1e3)
        made.add(*curve(table, "share", "tbt_ms", "time between tokens", palette), row=row)
        made.add(*curve(table, "share", "batch", "requests at once", palette), row=row)
        made.x(row, title="load over the largest that a full batch bears", range=[0, 1])
        made.y(row, title="ms, and requests at once", rangemode="tozero")

    def by_batch(made: Canvas, row: int) -> None:
        if batch is not None:
            rates = batch.group_by("backend", "batch", maintain_order=True).agg(pl.col("tokens_per_s").mean())
            made.add(*curve(rates, "batch", "tokens_per_s", "tokens a second", palette), row=row)
        half = knee["fixed_s"] / knee["each_s"]
        made.line(x=half, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="requests at once (dotted: half of all that batching can give)")
        made.y(row, title="tokens a second", rangemode="tozero")
        log_axis(made, "x", row=row, span=(0.9, 1.1 * max(knee["slots"], half)))

    painters = {"load": ("against load", by_load), "batch": ("against the batch", by_batch)}
    return stack("What batching gains and costs", painters, panel)
