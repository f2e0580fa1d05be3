"""λScale's evaluation replayed: waits for first tokens and GPUs in use, by system (Figures 9 to 11)."""

import polars as pl

from workbench.catalogue.lambdascale.trace_replay import ALL
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, INK, WORDS, Palette, curve, log_axis, pattern
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import Painter, stack

LABELS = ("7B", "13B", "70B")


def _first(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("backend") == table["backend"][0])


def _cdf(outcome: Outcome, label: str, palette: Palette, *, legend: bool) -> Painter:
    def paint(made: Canvas, row: int) -> None:
        table = _first(outcome.tables["cdf"]).filter(pl.col("model") == label)
        for (system,), part in table.group_by("system", maintain_order=True):
            line = {"color": palette.colour(system), "dash": palette.dash(system), "width": 2}
            x, y = part["wait_s"].to_list(), (part["share"] * 100).to_list()
            made.add(scatter(x, y, mode="lines", name=system, line=line, showlegend=legend), row=row)
        made.x(row, title="wait for first tokens, s").y(row, title="% of batches", range=[0, 101])
        log_axis(made, "x", row=row)

    return paint


def _spread(means: pl.DataFrame, column: str) -> dict[str, object]:
    """Error bars from `low` to `high` about a column."""
    up, down = (means["high"] - means[column]).to_list(), (means[column] - means["low"]).to_list()
    return {"type": "data", "symmetric": False, "color": INK, "array": up, "arrayminus": down}


def fixed_rates(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Figure 9: mean wait against the rate, and all waits at 6, 3 and 1.5 batches a second, for three models."""
    palette = Palette(ALL[1:])

    def rates(label: str) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            table = outcome.tables["waits"].filter(pl.col("model") == label)
            for system in ALL[1:]:
                for trace in curve(table.filter(pl.col("system") == system), "rate_per_s", "mean_s", system, palette):
                    made.add({**trace, "showlegend": label == LABELS[0] or panel is not None}, row=row)
            made.x(row, title="batches a second").y(row, title="mean wait, s")
            log_axis(made, "y", row=row)

        return paint

    painters = {f"rates {label}": (f"{label}: mean wait for first tokens", rates(label)) for label in LABELS}
    for label in LABELS:
        title = f"{label}: {outcome.parameters['requests']} batches at one rate"
        painters[f"waits {label}"] = (title, _cdf(outcome, label, palette, legend=panel is not None))
    return stack("First tokens at fixed rates", painters, panel)


def gpus(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Figure 10: GPUs in use over time on one reconstruction, and GPU time on all."""
    palette = Palette(ALL)

    def over_time(label: str) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            table = _first(outcome.tables["gpus"]).filter(pl.col("model") == label)
            for (system,), part in table.group_by("system", maintain_order=True):
                line = {"color": palette.colour(system), "dash": palette.dash(system), "width": 1.8, "shape": "hv"}
                trace = scatter(part["time_s"].to_list(), part["gpus"].to_list(), mode="lines", name=system, line=line)
                made.add({**trace, "showlegend": label == LABELS[0] or panel is not None}, row=row)
            made.x(row, title="seconds of the replay").y(row, title="GPUs, means over windows", rangemode="tozero")

        return paint

    def time(made: Canvas, row: int) -> None:
        table = outcome.tables["gpu_time"]
        for backend in table["backend"].unique(maintain_order=True):
            for place, system in enumerate(ALL):
                part = table.filter((pl.col("system") == system) & (pl.col("backend") == backend))
                base = table.filter((pl.col("system") == ALL[0]) & (pl.col("backend") == backend))
                both = part.join(base, on=["reconstruction", "model"], suffix="_ideal", maintain_order="left")
                ratio = both.with_columns(ratio=pl.col("gpu_s") / pl.col("gpu_s_ideal"))
                means = ratio.group_by("model", maintain_order=True).agg(
                    pl.col("ratio").mean(), low=pl.col("ratio").min(), high=pl.col("ratio").max()
                )
                spread = _spread(means, "ratio")
                made.add(
                    bar(
                        means["model"].to_list(), means["ratio"].to_list(), name=f"{system} ({WORDS[backend]})",
                        error_y=spread, marker={"color": COLOURS[place], "pattern": {"shape": pattern(backend)}},
                    ),
                    row=row,
                )  # fmt: skip
        made.set(barmode="group").y(row, title="GPU time over the ideal's", rangemode="tozero")

    painters = {f"gpus {label}": (f"{label}: one reconstruction", over_time(label)) for label in LABELS}
    painters["time"] = ("GPU time, mean and range over reconstructions", time)
    return stack("GPUs in use on the replayed half hour", painters, panel)


def waits(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Figure 11: distribution of waits on all reconstructions, and P90 on each."""
    palette = Palette(ALL)

    def p90(made: Canvas, row: int) -> None:
        table = _first(outcome.tables["p90"])
        for system in ALL:
            part = table.filter(pl.col("system") == system)
            means = part.group_by("model", maintain_order=True).agg(
                pl.col("p90_s").mean(), low=pl.col("p90_s").min(), high=pl.col("p90_s").max()
            )
            spread = _spread(means, "p90_s")
            mark = {"color": palette.colour(system)}
            x, y = means["model"].to_list(), means["p90_s"].to_list()
            made.add(
                bar(x, y, name=f"{system}, P90", marker=mark, error_y=spread, showlegend=panel is not None), row=row
            )
        made.set(barmode="group").y(row, title="P90 wait, s")
        log_axis(made, "y", row=row)

    painters = {
        f"cdf {label}": (
            f"{label}: all reconstructions",
            _cdf(outcome, label, palette, legend=label == LABELS[0] or panel is not None),
        )
        for label in LABELS
    }
    painters["p90"] = ("P90, mean and range over reconstructions", p90)
    return stack("First tokens on the replayed half hour", painters, panel)
