"""What settings of a pool do to attainment: longest quota, split of the GPUs, rate of loading."""

import polars as pl

from workbench.catalogue.aegaeon import prefill_split, q_max, switch_bandwidth
from workbench.catalogue.aegaeon.pools import METRICS
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import Palette, log_axis, published_marks
from workbench.figures.canvas import Canvas
from workbench.figures.panels import stack
from workbench.figures.pooling_sweeps import curve_with_range

PREFETCHES = {"ideal": "ideal prefetch", "on": "prefetch of the next turn's model", "off": "no prefetch"}


def quota(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Attainment by four definitions against the longest quota; switches a second and mean pace."""
    table, palette = outcome.tables["curve"], Palette((*METRICS, "switches", "pace"))
    marks = {q_max.SERIES: "qos-artifact", q_max.BY_METRIC: "token"}

    def metrics(made: Canvas, row: int) -> None:
        for name in METRICS:
            made.add(*curve_with_range(table, "quota_s", name, name, palette), row=row)
        places = dict.fromkeys(METRICS, 0.5)
        made.add(*published_marks(outcome, palette, series=marks, x=places), row=row)
        log_axis(made.x(row, title="longest quota, s").y(row, title="attainment", range=[0, 1.05]), "x", row=row)

    def switches(made: Canvas, row: int) -> None:
        made.add(*curve_with_range(table, "quota_s", "switches_per_s", "switches", palette), row=row)
        log_axis(made.x(row, title="longest quota, s").y(row, title="switches/s", rangemode="tozero"), "x", row=row)

    painters = {
        "metrics": (f"{outcome.parameters['models']} models, by four definitions", metrics),
        "switches": ("switches of all GPUs", switches),
    }
    return stack("The longest quota of a turn", painters, panel)


def split(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Attainment and the first token against the number of prefill instances."""
    table, palette = outcome.tables["curve"], Palette(METRICS)

    def attainment(made: Canvas, row: int) -> None:
        for name in METRICS:
            made.add(*curve_with_range(table, "prefill", name, name, palette), row=row)
        made.add(*published_marks(outcome, palette, series={prefill_split.SERIES: "qos-artifact"}), row=row)
        made.x(row, title="prefill instances of 16").y(row, title="attainment", range=[0, 1.05])

    def ttft(made: Canvas, row: int) -> None:
        made.add(*curve_with_range(table, "prefill", "ttft_s", "first token", palette), row=row)
        made.x(row, title="prefill instances of 16").y(row, title="seconds", rangemode="tozero")

    painters = {
        "attainment": (f"{outcome.parameters['models']} models, 0.1 requests per s each", attainment),
        "ttft": ("mean time to the first token", ttft),
    }
    return stack("GPUs for prompts and GPUs for decoding", painters, panel)


def bandwidth(outcome: Outcome, _: str | None = None) -> Canvas:
    """Attainment against the rate of loading, for three ways to prefetch."""
    table, palette = outcome.tables["curve"], Palette(PREFETCHES.values())

    def paint(made: Canvas, row: int) -> None:
        for way, words in PREFETCHES.items():
            part = table.filter(pl.col("prefetch") == way)
            made.add(*curve_with_range(part, "bytes_per_s", "qos-artifact", words, palette), row=row)
        marks = {text + switch_bandwidth.X: PREFETCHES[way] for way, text in switch_bandwidth.WAYS.items()}
        for trace in published_marks(outcome, palette, series=marks):
            made.add({**trace, "name": trace["name"].replace(f", {switch_bandwidth.X}", "")}, row=row)
        log_axis(
            made.x(row, title="rate of loading, bytes/s").y(row, title="attainment (share of time)", range=[0, 1.05]),
            "x", row=row,
        )  # fmt: skip

    words = f"{outcome.parameters['models']} models, {outcome.parameters['rate_per_s']:g} requests per s each"
    return stack("How fast weights load", {"attainment": (words, paint)}, None)
