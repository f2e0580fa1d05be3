"""BlendServe over many runs: heat maps of the gain, other models and accelerators, ablations."""

import math

import polars as pl

from workbench.catalogue.blendserve import hardware as chips
from workbench.catalogue.blendserve.heat import UNLABELLED
from workbench.catalogue.blendserve.jobs import BLEND, NF_DFS, TRACES
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, Palette, figure, log_axis, published_marks
from workbench.figures.blending import SYSTEMS, first, grouped
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack


def heat(outcome: Outcome, _: str | None = None) -> Canvas:
    """Gain by density and sharing ratio; below ours stands the printed one. A density without a label is marked ≈."""
    table = outcome.tables["cells"]
    cells = table.filter(pl.col("backend") == table["backend"][0])
    table = cells.group_by("density", "sharing").agg(pl.mean("gain"))
    densities, sharings = sorted(table["density"].unique()), sorted(table["sharing"].unique())
    lacking = set(cells.filter(pl.col("gain").is_null()).select("density", "sharing").iter_rows())
    ours = {(row["density"], row["sharing"]): row["gain"] for row in table.iter_rows(named=True)}
    series = dict(cells.select("density", "series").unique().iter_rows())
    published = {(row["series"], row["x"]): row["value"] for row in outcome.published.iter_rows(named=True)}
    names = [f"≈ {density:.4g}" if UNLABELLED in series[density] else f"{density:.2f}" for density in densities]

    def text(density: float, ratio: float) -> str:
        theirs = published.get((series[density], f"{ratio:g}"))
        mine = ours.get((density, ratio))
        told = "no mix" if (density, ratio) in lacking else ""
        return (told if mine is None else f"{mine:.2f}") + (f"<br>◇ {theirs:.2f}" if theirs is not None else "")

    made = figure(
        f"{BLEND} over {NF_DFS} (◇ published)", "sharing ratio", "density", height=max(400, 130 + 42 * len(densities))
    )
    made.add(
        {
            "type": "heatmap",
            "x": [f"{ratio:g}" for ratio in sharings],
            "y": names,
            "z": [[ours.get((density, ratio)) for ratio in sharings] for density in densities],
            "text": [[text(density, ratio) for ratio in sharings] for density in densities],
            "texttemplate": "%{text}", "colorscale": "Viridis", "colorbar": {"title": {"text": "gain"}},
            "hovertemplate": "density %{y}, sharing %{x}: %{z:.3f}<extra></extra>",
        }
    )  # fmt: skip
    return made.x(type="category").y(type="category")


def four_sources(outcome: Outcome, _: str | None = None) -> Canvas:
    """Mean gain by compute source, with the means of the printed cells."""
    table = first(outcome.tables["means"])
    names, gain = table["source"].to_list(), table["gain"].to_list()
    made = figure(f"{BLEND} over {NF_DFS}, means of equal cells", "", "ratio of throughputs")
    made.add(
        bar(
            names, gain, name="ours", marker={"color": Palette(SYSTEMS).colour(BLEND)},
            text=[f"{value:.2f}" for value in gain], textposition="inside", insidetextanchor="middle",
        ),
        scatter(
            names, table["printed"].to_list(), mode="markers", name="mean of the printed cells",
            marker={"symbol": "diamond-open", "size": 12, "color": GREY, "line": {"width": 2}},
        ),
    )  # fmt: skip
    return made.y(range=[0, 1.5])


def _curves(table: pl.DataFrame, x: str, y: str, series: str, palette: Palette) -> list[Trace]:
    return [
        scatter(
            part.sort(x)[x].to_list(), part.sort(x)[y].to_list(), mode="lines+markers", name=str(name),
            line={"color": palette.colour(str(name)), "dash": palette.dash(str(name)), "width": 2}, marker={"size": 8},
            legendgroup=str(name),
        )
        for (name,), part in table.group_by(series, maintain_order=True)
    ]  # fmt: skip


def scaling(outcome: Outcome, _: str | None = None) -> Canvas:
    """Table 3: speed-up by number of ranks, and a line of perfect scaling."""
    table = first(outcome.tables["scaling"])
    palette = Palette(TRACES)
    made = figure("Data parallel scaling", "accelerators", "speed-up over one")
    made.add(*_curves(table, "ranks", "speed_up", "trace", palette))
    ranks = sorted(table["ranks"].unique())
    made.add(scatter(ranks, ranks, mode="lines", name="perfect", line={"color": GREY, "dash": "dot", "width": 1}))
    known = {f"speed-up, {trace}, x = data-parallel GPUs": trace for trace in TRACES}
    made.add(*published_marks(outcome, palette, series=known))
    return made.x(tickvals=ranks).y(rangemode="tozero")


def models(outcome: Outcome, _: str | None = None) -> Canvas:
    """Figure 12: throughput by trace for each model."""
    table = first(outcome.tables["throughput"])
    palette = Palette(SYSTEMS)

    def painter(name: str):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("model") == name)
            for trace in grouped(part, "trace", "tokens_per_s", "system", palette, digits=",.0f", unit=" tokens/s"):
                made.add({**trace, "showlegend": row == 1}, row=row)
            made.y(row, title="tokens/s", rangemode="tozero")

        return paint

    names = table["model"].unique(maintain_order=True).to_list()
    painters = {name: (name, painter(name)) for name in names}
    return stack("Other models, each with traces made for it", painters, None, [0.75] * len(names)).set(barmode="group")


def sampling(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Share of the practical optimum and error of estimates by share sampled; tags and true lengths as lines."""
    table = first(outcome.tables["sampling"])
    subtree = table.filter(pl.col("way") == "subtree").sort("sampled")
    sampled, palette = subtree["sampled"].to_list(), Palette(["subtree", "tag", "oracle"])
    others = (("tag", "1 %, means by source"), ("oracle", "true lengths"))

    def painter(column: str, title: str, **axis):
        def paint(made: Canvas, row: int) -> None:
            made.add(*({**one, "showlegend": row == 1} for one in _curves(subtree, "sampled", column, "way", palette)),
                     row=row)  # fmt: skip
            for way, label in others:
                value = table.filter(pl.col("way") == way)[column].to_list()
                made.add(
                    scatter(
                        [sampled[0], sampled[-1]], [value[0]] * 2, mode="lines", name=label, showlegend=row == 1,
                        line={"color": palette.colour(way), "dash": palette.dash(way), "width": 2},
                    ),
                    row=row,
                )  # fmt: skip
            if column == "relative_error":
                edges = [*subtree["error_low"], *reversed(subtree["error_high"].to_list())]
                made.add(
                    scatter(
                        [*sampled, *reversed(sampled)], edges, mode="lines", fill="toself", name="five samples each",
                        line={"width": 0, "color": palette.colour("subtree")}, opacity=0.35, hoverinfo="skip",
                    ),
                    row=row,
                )  # fmt: skip
            made.x(row, title="share of requests sampled").y(row, title=title, tickformat=".0%", **axis)
            log_axis(made, "x", row=row)

        return paint

    painters = {
        "share": ("how near the practical optimum", painter("share", "share of the optimum", range=[0, 1.05])),
        "error": (
            "how far the estimates are off",
            painter("relative_error", "misses over outputs", rangemode="tozero"),
        ),
    }
    return stack("How many samples are enough?", painters, panel)


BESIDE = ("top center", "bottom center")
"""Where the labels of both ways of splitting stand, whose points may lie on each other."""
SAME_PLACE = 0.02
"""Of the axis, within which labels of a way would lie on each other."""


def splits(outcome: Outcome, _: str | None = None) -> Canvas:
    """Leaves split against the sharing that is kept, both forms, with the throughput they give."""
    table = first(outcome.tables["splits"])
    palette = Palette(["outlier", "budget"])
    made = figure("What splitting buys", "share of the sharing ratio kept", "share of the practical optimum")
    for ((way,), part), beside in zip(table.group_by("way", maintain_order=True), BESIDE, strict=False):
        part = part.sort("sharing")
        made.add(
            scatter(
                part["sharing"].to_list(), part["share"].to_list(), mode="lines+markers+text", name=str(way),
                text=_leaves_once(part["sharing"].to_list(), part["split"].to_list()), textposition=beside,
                textfont={"size": 10}, marker={"size": 9},
                line={"color": palette.colour(str(way)), "dash": palette.dash(str(way)), "width": 2},
            )
        )  # fmt: skip
    return made.x(tickformat=".0%", range=[-0.1, 1.15]).y(tickformat=".0%", range=[0, 1.1])


def _leaves_once(places: list[float], shares: list[float]) -> list[str]:
    """Shares of leaves in words; of points that lie on each other the last one tells the least and the largest."""
    texts, here = [], []
    for place, after, share in zip(places, [*places[1:], math.inf], shares, strict=True):
        here.append(share)
        if after - place > SAME_PLACE:
            ends = dict.fromkeys(f"{end:.2%}" for end in (min(here), max(here)))
            texts.append(f"{' to '.join(ends)} of leaves")
            here = []
        else:
            texts.append("")
    return texts


def tree_times(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds of the stages before a run, and of a lookup, on a logarithmic axis; printed times of theirs in grey."""
    stages, row = first(outcome.tables["stages"]), first(outcome.tables["operation"]).row(0, named=True)
    made = figure("What the prefix tree costs", "", "seconds")
    names = [*stages["stage"], "a lookup, mean", "a lookup, 99 %", "a step of the GPU"]
    values = [*stages["seconds"], row["mean_s"], row["p99_s"], row["step_s"]]
    made.add(bar(names, values, name="this machine", marker={"color": Palette().colour("ours")}))
    theirs = outcome.published.filter(pl.col("series") == "run-time tree operation")
    places = {"mean": "a lookup, mean", "P99": "a lookup, 99 %"}
    made.add(
        scatter(
            [places[x] for x in theirs["x"]], theirs["value"].to_list(), mode="markers", name="theirs (published)",
            marker={"symbol": "diamond-open", "size": 12, "color": GREY, "line": {"width": 2}},
        )
    )  # fmt: skip
    return log_axis(made, "y")


def scanners(outcome: Outcome, _: str | None = None) -> Canvas:
    """Share of the practical optimum by trace for each way to scan."""
    table = first(outcome.tables["scanners"])
    names = table["scan"].unique(maintain_order=True).to_list()
    made = figure("Three ways to scan, and the order down the tree", "", "share of the practical optimum")
    made.add(*grouped(table, "trace", "share", "scan", Palette(names), digits=".1%"))
    return made.y(range=[0, 1.08], tickformat=".0%").set(barmode="group")


def orders(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Share of the practical optimum, and of the largest sharing, by trace and order."""
    table = first(outcome.tables["orders"])
    palette = Palette((*SYSTEMS, *table["system"].unique(maintain_order=True)))

    def painter(column: str):
        def paint(made: Canvas, row: int) -> None:
            for trace in grouped(table, "trace", column, "system", palette, digits=".0%"):
                made.add({**trace, "showlegend": row == 1}, row=row)
            made.y(row, title="share", range=[0, 1.1], tickformat=".0%")

        return paint

    painters = {
        "share": ("throughput over the practical optimum", painter("share")),
        "sharing": ("sharing kept over the largest possible", painter("kept")),
    }
    return stack("Five orders", painters, panel).set(barmode="group")


def retention(outcome: Outcome, _: str | None = None) -> Canvas:
    """Throughput by sharing ratio for each order."""
    table = first(outcome.tables["retention"])
    made = figure(
        f"Random order or down the tree, density {outcome.parameters['density']:g}", "sharing ratio", "tokens/s"
    )
    made.add(*_curves(table, "sharing", "tokens_per_s", "system", Palette(SYSTEMS)))
    return made.y(rangemode="tozero")


def run_length(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Share of the practical optimum and of the tail by number of requests."""
    table = first(outcome.tables["lengths"])
    palette = Palette(SYSTEMS)

    def painter(column: str, title: str):
        def paint(made: Canvas, row: int) -> None:
            for trace in _curves(table, "requests", column, "system", palette):
                made.add({**trace, "showlegend": row == 1}, row=row)
            if column == "tail":
                made.line(y=0.05, row=row, color=GREY, dash="dot", width=1)
            made.x(row, title="requests").y(row, title=title, tickformat=".0%", rangemode="tozero")
            log_axis(made, "x", row=row)

        return paint

    painters = {
        "share": ("how near the practical optimum", painter("share", "share of the optimum")),
        "tail": (
            "time after the pool was a quarter full for the last time; dotted: 5 %",
            painter("tail", "share of the time"),
        ),
    }
    return stack("Is the run long enough?", painters, panel)


def windows(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Share of tokens done in time and throughput by window."""
    table = first(outcome.tables["windows"])
    palette = Palette(SYSTEMS)

    def painter(column: str, title: str, **axis):
        def paint(made: Canvas, row: int) -> None:
            for trace in _curves(table, "window_h", column, "system", palette):
                made.add({**trace, "showlegend": row == 1}, row=row)
            made.x(row, title="window, h").y(row, title=title, rangemode="tozero", **axis)
            log_axis(made, "x", row=row)

        return paint

    painters = {
        "in time": ("share of tokens done within the next window", painter("in_time", "share", tickformat=".0%")),
        "throughput": ("tokens over the time a window takes", painter("tokens_per_s", "tokens/s")),
    }
    return stack("Jobs that arrive over a day", painters, panel)


def hardware(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Throughput by accelerator: the A100's jobs, and jobs of the same density."""
    table = first(outcome.tables["hardware"])
    palette = Palette(SYSTEMS)

    def painter(jobs: str):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("jobs") == jobs)
            for trace in grouped(
                part, "accelerator", "tokens_per_s", "system", palette, digits=",.0f", unit=" tokens/s"
            ):
                made.add({**trace, "showlegend": row == 1}, row=row)
            made.y(row, title="tokens/s", rangemode="tozero")

        return paint

    painters = {jobs: (jobs, painter(jobs)) for jobs in (chips.SAME, chips.OWN)}
    return stack("Other accelerators", painters, panel).set(barmode="group")
