"""What packing, memory made ahead and direct transfer are worth: time by message size, and each left out in turn."""

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.figures.base import WORDS, Palette, curve, log_axis, pattern, published_marks
from workbench.figures.canvas import Canvas, bar
from workbench.figures.panels import Painter, stack


def packing(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds for a gigabyte against the size of a message; time over that with everything on."""
    tables = outcome.tables
    palette = Palette(("messages", "off"))

    def ablation(made: Canvas, row: int) -> None:
        for (backend,), table in tables["ablation"].group_by("backend", maintain_order=True):
            part = table.group_by("way", maintain_order=True).agg(
                pl.col("slower").median().alias("middle"),
                pl.col("slower").quantile(0.25).alias("low"),
                pl.col("slower").quantile(0.75).alias("high"),
            )
            spread = {
                "type": "data", "symmetric": False, "array": (part["high"] - part["middle"]).to_list(),
                "arrayminus": (part["middle"] - part["low"]).to_list(),
            }  # fmt: skip
            ways = [way.replace(", ", ",<br>").replace(" instead", "<br>instead") for way in part["way"]]
            mark = {"color": palette.colour("off"), "opacity": 0.75, "pattern": {"shape": pattern(str(backend))}}
            name = f"median, half of all turns ({WORDS[backend]})"
            made.add(bar(ways, part["middle"].to_list(), name=name, error_y=spread, marker=mark), row=row)
        made.y(row, title="time over that with all on", rangemode="tozero")

    painters = {
        "sweep": ("One message at a time", _sweep(outcome, palette)),
        "ablation": ("Blocks received, each advantage left out", ablation),
    }
    return stack("How a model reaches a node's memory", painters, None)


def block_sizes(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds for a gigabyte against the size of a message: the elbow between overhead and bandwidth."""
    path = f", {outcome.tables['path']['path'][-1]}" if "path" in outcome.tables else ""
    painters = {"sweep": (f"One message at a time{path}", _sweep(outcome, Palette(("messages",))))}
    return stack("How large should messages be?", painters, None)


def _sweep(outcome: Outcome, palette: Palette) -> Painter:
    def paint(made: Canvas, row: int) -> None:
        table = outcome.tables["sweep"]
        traces = curve(table, "message_bytes", "gigabyte_s", "messages", palette, name="1 GB in messages")
        made.add(*traces, *published_marks(outcome, palette), row=row)
        made.x(row, title="bytes of a message").y(row, title="seconds for 1 GB")
        log_axis(made, "x", "y", row=row)

    return paint
