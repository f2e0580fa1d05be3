"""Systems of several papers on one question (showdown)."""

from collections.abc import Sequence

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.showdown.burst import FROM
from workbench.catalogue.showdown.common import SYSTEMS
from workbench.figures.base import COLOURS, INK, Palette, curve, log_axis
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import Painter, stack

MARKS = ("circle", "square", "diamond", "cross", "triangle-up", "star", "hexagon")


def ends(mean: list[float], low: list[float | None], high: list[float | None]) -> dict[str, object]:
    """Error bars of intervals, none where there are none."""
    up = [0.0 if edge is None else edge - value for value, edge in zip(mean, high, strict=True)]
    down = [0.0 if edge is None else value - edge for value, edge in zip(mean, low, strict=True)]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "color": INK, "thickness": 1}


def of_measure(outcome: Outcome, measure: str) -> dict[str, dict]:
    """system -> its row of a measure, from the backend that was asked first."""
    table = outcome.tables["summary"].filter(pl.col("measure") == measure)
    return {row["system"]: row for row in table.filter(pl.col("backend") == table["backend"][0]).to_dicts()}


def pareto(
    outcome: Outcome, x: str, y: str, titles: tuple[str, str], systems: Sequence[str] = tuple(SYSTEMS)
) -> Painter:
    """Systems as points with intervals: differences from one of them on the same seeds."""
    palette = Palette(systems)

    def paint(made: Canvas, row: int) -> None:
        across, up = of_measure(outcome, x), of_measure(outcome, y)
        for place, name in enumerate(across):
            one, other = across[name], up[name]
            if one["difference"] is None or other["difference"] is None:
                continue
            colour = palette.colour(name)
            made.add(
                scatter(
                    [one["difference"]], [other["difference"]], mode="markers", name=name, legendgroup=name,
                    error_x=ends([one["difference"]], [one["difference_low"]], [one["difference_high"]]),
                    error_y=ends([other["difference"]], [other["difference_low"]], [other["difference_high"]]),
                    marker={"color": colour, "size": 11, "symbol": MARKS[place % len(MARKS)]},
                ),
                row=row,
            )  # fmt: skip
        made.x(row, title=titles[0]).y(row, title=titles[1])

    return paint


def bars(outcome: Outcome, measures: dict[str, str], title: str, *, log: bool = False) -> Painter:
    """Bars of some measures, system by system, with intervals over seeds."""

    def paint(made: Canvas, row: int) -> None:
        for place, (measure, text) in enumerate(measures.items()):
            found = {name: one for name, one in of_measure(outcome, measure).items() if one["mean"] is not None}
            mean, low, high = ([one[key] for one in found.values()] for key in ("mean", "low", "high"))
            made.add(
                bar(
                    list(found), mean, name=text, error_y=ends(mean, low, high),
                    marker={"color": COLOURS[place], "pattern": {"shape": ("", "/", ".")[place % 3]}},
                ),
                row=row,
            )  # fmt: skip
        made.set(barmode="group").y(row, title=title, rangemode="tozero")
        if log:
            log_axis(made, "y", row=row)

    return paint


def _starts(outcome: Outcome) -> Painter:
    table = outcome.tables["starts"].filter(pl.col("seconds") > 0)
    table = table.with_columns(series=pl.col("system") + ", " + pl.col("way").replace_strict(FROM))
    palette = Palette(table["series"].unique(maintain_order=True).to_list())

    def paint(made: Canvas, row: int) -> None:
        for name in table["series"].unique(maintain_order=True):
            made.add(*curve(table.filter(pl.col("series") == name), "targets", "seconds", name, palette), row=row)
        made.x(row, title="instances that start at once").y(row, title="seconds")
        log_axis(made, "y", row=row)

    return paint


def burst(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Pareto plot, TTFT, start-up, and who was harmed."""
    painters = {}
    if "summary" in outcome.tables:
        painters = {
            "pareto": (
                "Paired differences from the ideal on the same seeds (95 %)",
                pareto(outcome, "gpu_allocated_s", "ttft_p99_s", ("GPU-seconds more", "TTFT P99 more, s")),
            ),
            "ttft": (
                "Time to the first token",
                bars(outcome, {"ttft_mean_s": "mean TTFT", "ttft_p99_s": "P99 of TTFT"}, "seconds", log=True),
            ),
        }
    painters["starts"] = ("Weights there after", _starts(outcome))
    if "summary" in outcome.tables:
        measures = {"tbt_scaling_p99_s": "TBT P99 while scaling", "tbt_steady_p99_s": "TBT P99 at other times"}
        painters["harm"] = ("Tokens of requests that ran already", bars(outcome, measures, "seconds"))
    return stack("The same burst for all", painters, panel if panel in painters else None)
