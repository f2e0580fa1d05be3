"""Runs of pools: where time goes, how long switches take, small GPUs and large models."""

import polars as pl

from workbench.catalogue.aegaeon import fig14, fig15, fig17
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, WORDS, Palette, figure, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack
from workbench.figures.pooling_sweeps import curve_with_range


def _first(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of the first backend's first run."""
    return table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("replication") == 0))


def parts(outcome: Outcome, _: str | None = None) -> Canvas:
    """Aegaeon Figure 14: shares of the requests' time."""
    table = outcome.tables["parts"]
    mean = table.filter(pl.col("backend") == table["backend"][0])
    mean = mean.group_by("setup", "part", maintain_order=True).agg(pl.col("share").mean())
    palette, made = Palette(fig14.PARTS), figure("Where the time of requests goes", "models x requests/s each", "%")
    for part in fig14.PARTS:
        found = mean.filter(pl.col("part") == part)
        made.add(
            bar(found["setup"].to_list(), (found["share"] * 100).to_list(), name=part,
                marker={"color": palette.colour(part)})
        )  # fmt: skip
    return made.set(barmode="stack")


def switches(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 15: distribution of switch times by size, and of waits for KV caches by set-up."""
    table, waits = _first(outcome.tables["switches"]), _first(outcome.tables["waits"])
    sizes, setups = Palette(fig15.SIZES.values()), Palette(fig14.SETUPS)

    def left(made: Canvas, row: int) -> None:
        for size in table["size"].unique(maintain_order=True):
            part = table.filter(pl.col("size") == size)
            line = {"color": sizes.colour(size), "dash": sizes.dash(size), "width": 2}
            x, y = part["seconds"].to_list(), (part["quantile"] * 100).to_list()
            made.add(scatter(x, y, mode="lines", name=f"{size} ({WORDS[table['backend'][0]]})", line=line), row=row)
        made.line(x=fig15.NO_TIME_S, row=row, color=GREY, dash="dot", width=1)
        marks = {fig15.SHARE: "published"}
        for trace in published_marks(outcome, Palette(), series=marks, x={"32 models, 0.1 per s": fig15.NO_TIME_S}):
            spread = trace.get("error_y", {})
            percent = {
                name: [value * 100 for value in spread[name]] for name in ("array", "arrayminus") if name in spread
            }
            made.add({**trace, "y": [value * 100 for value in trace["y"]], "error_y": spread | percent}, row=row)
        made.x(row, title="switch, s", rangemode="tozero").y(row, title="% of switches", range=[0, 101])

    def right(made: Canvas, row: int) -> None:
        for setup in waits["setup"].unique(maintain_order=True):
            part = waits.filter(pl.col("setup") == setup)
            line = {"color": setups.colour(setup), "dash": setups.dash(setup), "width": 2}
            x, y = (part["seconds"] * 1e3).to_list(), (part["quantile"] * 100).to_list()
            made.add(scatter(x, y, mode="lines", name=setup, line=line), row=row)
        made.x(row, title="waiting for its KV cache, ms in all", rangemode="tozero")
        made.y(row, title="% of requests", range=[0, 101])

    painters = {
        "switches": (f"32 models at 0.1 requests per s each; dotted: {fig15.NO_TIME_S:g} s", left),
        "sync": ("requests, by set-up (models x requests/s each)", right),
    }
    return stack("Switches and waits for KV caches", painters, panel)


def ends(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 17: attainment of three promises on four A10, and of four 72B models."""
    table, metric = outcome.tables["curve"], outcome.parameters["metric"]
    palette = Palette(("Loose", "Normal", "Strict"))

    def one(name: str, title: str):
        def paint(made: Canvas, row: int) -> None:
            for promise in ("Loose", "Normal", "Strict"):
                part = table.filter((pl.col("panel") == name) & (pl.col("promise") == promise))
                shown = panel == name or (panel is None and name == "left")
                made.add(*curve_with_range(part, "x", metric, promise, palette, legend=shown), row=row)
            made.x(row, title=title).y(row, title=f"attainment ({metric})", range=[0, 1.05])

        return paint

    words = {name: ", ".join(fig17.PROMISES[name]) for name in ("left", "right")}
    painters = {
        "left": (
            f"four A10: {words['left']} by the time between tokens",
            one("left", "models, 0.1 requests per s each"),
        ),
        "right": (
            f"72B on four GPUs: {words['right']} by the first token",
            one("right", "requests per s of four models"),
        ),
    }
    return stack("Small GPUs and large models", painters, panel)
