"""Beyond the paper: admission, caps on buffers, shares of owners, which models to pool."""

import polars as pl

from workbench.catalogue.aegaeon import admission as admitting
from workbench.catalogue.aegaeon import buffer_cap, fairness
from workbench.catalogue.aegaeon.pools import METRICS
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, DASHES, Palette, figure, log_axis
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack
from workbench.figures.pooling_sweeps import averaged, curve_with_range


def admission(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Kept and broken promises by rule and load; rejections against broken promises when lengths are guessed."""
    loads, errors = outcome.tables["loads"], outcome.tables.get("errors")
    palette = Palette(admitting.RULES)

    def by_load(column: str, title: str, *, legend: bool):
        def paint(made: Canvas, row: int) -> None:
            for rule in admitting.RULES:
                part = loads.filter(pl.col("rule") == rule)
                made.add(*curve_with_range(part, "models", column, rule, palette, legend=legend), row=row)
            made.x(row, title="models on eight GPUs", rangemode="tozero").y(row, title=title, range=[-0.02, 1.05])

        return paint

    def guesses(made: Canvas, row: int) -> None:
        if errors is None:
            return
        for k, margin in enumerate(sorted(errors["margin"].unique().to_list())):
            part = errors.filter(pl.col("margin") == margin)
            rejected, broken = averaged(part, "error", "rejected"), averaged(part, "error", "broken")
            made.add(
                scatter(
                    (rejected["y"] * 100).to_list(),
                    (broken["y"] * 100).to_list(),
                    mode="lines+markers+text",
                    text=[f"{error:.0%}" for error in rejected["x"]],
                    textposition="top center",
                    name=f"guesses times {margin:g}",
                    line={"color": COLOURS[k], "dash": DASHES[k % len(DASHES)], "width": 2},
                ),
                row=row,
            )
        made.x(row, title="% of the requests turned away (labels: how far guesses are off)")
        made.y(row, title="% of the admitted broken", rangemode="tozero")

    painters = {
        "kept": ("served as promised, of all that came", by_load("kept", "share of all", legend=True)),
        "broken": ("broken promises, of those admitted", by_load("broken", "share", legend=panel == "broken")),
        "errors": (f"{outcome.parameters['models']} models, look-ahead with guessed lengths", guesses),
    }
    return stack("Who is let in", painters, panel)


def caps(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Attainment and seconds in hand by cap; distribution of gaps between tokens."""
    table, gaps = outcome.tables["caps"], outcome.tables["gaps"]
    first = gaps.filter((pl.col("backend") == gaps["backend"][0]) & (pl.col("replication") == 0))
    palette = Palette((*METRICS, "in hand, P95", "in hand, median"))

    def attainment(made: Canvas, row: int) -> None:
        for name in METRICS:
            made.add(*curve_with_range(table, "cap_s", name, name, palette), row=row)
        log_axis(made.x(row, title="cap, s (1,000: none)").y(row, title="attainment", range=[0, 1.05]), "x", row=row)

    def lead(made: Canvas, row: int) -> None:
        for column, name in (("lead_p95_s", "in hand, P95"), ("lead_p50_s", "in hand, median")):
            made.add(*curve_with_range(table, "cap_s", column, name, palette), row=row)
        log_axis(made.x(row, title="cap, s (1,000: none)").y(row, title="seconds", rangemode="tozero"), "x", row=row)

    def between(made: Canvas, row: int) -> None:
        for k, cap in enumerate(first["cap_s"].unique(maintain_order=True).to_list()):
            part = first.filter((pl.col("cap_s") == cap) & (pl.col("gap_s") > 0))
            name = "no cap" if cap >= buffer_cap.NONE_S else f"cap {cap:g} s"
            line = {"color": COLOURS[k % len(COLOURS)], "dash": DASHES[k % len(DASHES)], "width": 2}
            x, y = part["gap_s"].to_list(), (part["quantile"] * 100).to_list()
            made.add(scatter(x, y, mode="lines", name=name, line=line), row=row)
        log_axis(made.x(row, title="gap between tokens, s").y(row, title="% of gaps"), "x", row=row)

    painters = {
        "attainment": (f"{outcome.parameters['models']} models", attainment),
        "lead": ("what readers have in hand when a token comes", lead),
        "gaps": ("gaps between tokens as they come", between),
    }
    return stack("A cap on what is earned", painters, panel)


def owners(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Requests served as promised and byte-seconds of host memory by owner and rule."""
    table = outcome.tables["owners"]
    table = table.filter(pl.col("backend") == table["backend"][0])
    mean = table.group_by("way", "owner", maintain_order=True).agg(pl.col("kept", "byte_seconds").mean())
    palette = Palette(fairness.OWNERS)

    def by(column: str, factor: float, *, legend: bool):
        def paint(made: Canvas, row: int) -> None:
            for owner in fairness.OWNERS:
                part = mean.filter(pl.col("owner") == owner)
                heights = (part[column] * factor).to_list()
                made.add(
                    bar(part["way"].to_list(), heights, name=f"owner {owner}", showlegend=legend,
                        marker={"color": palette.colour(owner)}),
                    row=row,
                )  # fmt: skip
            made.y(row, title="% served as promised" if column == "kept" else "10¹² bytes s", rangemode="tozero")

        return paint

    greed = outcome.parameters["greed"]
    painters = {
        "kept": (f"owner A asks {greed:g} times what the others do", by("kept", 100.0, legend=True)),
        "memory": ("KV caches in host memory", by("byte_seconds", 1e-12, legend=panel == "memory")),
    }
    return stack("Promises kept by owner", painters, panel).set(barmode="group")


def cut(outcome: Outcome, _: str | None = None) -> Canvas:
    """GPUs by the number of models that have their own."""
    table = outcome.tables["cuts"].filter(pl.col("replication") == 0).sort("dedicated")
    made = figure("GPUs by what is pooled", "busiest models with a GPU of their own", "GPUs")
    x = table["dedicated"].to_list()
    for column, name, colour in (("dedicated", "of their own", 0), ("pool_gpus", "in the pool", 1)):
        style = {"color": COLOURS[colour], "dash": DASHES[colour + 1], "width": 2}
        made.add(scatter(x, table[column].to_list(), mode="lines+markers", name=name, line=style))
    made.add(
        scatter(x, table["gpus"].to_list(), mode="lines+markers", name="in all", line={"color": COLOURS[2], "width": 3})
    )
    best = table.filter(pl.col("met")).sort("gpus").head(1)
    mark = {"symbol": "star", "size": 13, "color": COLOURS[2]}
    made.add(scatter(best["dedicated"].to_list(), best["gpus"].to_list(), mode="markers", name="fewest", marker=mark))
    return made.x(rangemode="tozero").y(rangemode="tozero")
