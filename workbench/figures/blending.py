"""BlendServe's runs: throughput of systems, compute and memory time along a run, sharing that is kept."""

import polars as pl

from workbench.catalogue.blendserve import fig3, fig7, fig9
from workbench.catalogue.blendserve.jobs import BLEND, NF_BALANCE, NF_DFS, OPTIMAL, TRACES, VLLM
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, INK, WORDS, Palette, figure, log_axis, published_marks
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack

SYSTEMS = (VLLM, NF_BALANCE, NF_DFS, BLEND, OPTIMAL)


def first(table: pl.DataFrame) -> pl.DataFrame:
    """The first run of the first backend."""
    if not len(table):  # nothing of this panel is known yet
        return table
    table = table.filter(pl.col("backend") == table["backend"][0])
    return table.filter(pl.col("replication") == 0) if "replication" in table.columns else table


def grouped(
    table: pl.DataFrame, x: str, y: str, series: str, palette: Palette, *, digits: str = ".3g", unit: str = ""
) -> list[Trace]:
    """Bars side by side: one trace a series, one group an x."""
    traces = []
    for (name,), part in table.group_by(series, maintain_order=True):
        values = part[y].to_list()
        traces.append(
            bar(
                part[x].to_list(),
                values,
                name=str(name),
                marker={"color": palette.colour(str(name))},
                text=[format(value, digits) for value in values],
                textposition="outside",
                textfont={"size": 10},
                cliponaxis=False,
                hovertemplate="%{x}: %{y:" + digits + "}" + unit + "<extra>%{fullData.name}</extra>",
            )
        )
    return traces


def throughput(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Figure 7: tokens per second by trace and system; crosses are the formula, diamonds what was published."""
    table = outcome.tables["throughput"]
    palette, main = Palette(SYSTEMS), table["backend"][0]
    width = 0.86 / len(SYSTEMS)

    def place(trace: str, system: str) -> float:
        return list(TRACES).index(trace) + (SYSTEMS.index(system) - (len(SYSTEMS) - 1) / 2) * width

    def painter(which: str):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("panel") == which)
            for (system,), bars in first(part).group_by("system", maintain_order=True):
                values, traces = bars["tokens_per_s"].to_list(), bars["trace"].to_list()
                made.add(
                    bar(
                        [place(trace, str(system)) for trace in traces], values, width=width * 0.94, name=str(system),
                        showlegend=row == 1, customdata=traces, marker={"color": palette.colour(str(system))},
                        text=[f"{value:,.0f}" for value in values], textposition="inside", insidetextanchor="start",
                        textangle=-90, textfont={"color": "white", "size": 11},
                        hovertemplate="%{customdata}: %{y:,.0f} tokens/s<extra>%{fullData.name}</extra>",
                    ),
                    row=row,
                )  # fmt: skip
            formula = part.filter((pl.col("backend") != main) & (pl.col("system") == NF_DFS))
            marks = [
                (NF_DFS, f"{NF_DFS}, source after source ({WORDS['analytic']})", "x-thin", formula.rows(named=True))
            ]
            if which == "a":
                theirs = outcome.published.filter(pl.col("series") == f"panel a: throughput of {BLEND}")
                rows = [{"trace": row["x"], "tokens_per_s": row["value"]} for row in theirs.iter_rows(named=True)]
                marks.append((BLEND, f"{BLEND} (published)", "diamond-open", rows))
            for system, name, symbol, rows in marks:
                if rows:
                    look = {"symbol": symbol, "size": 11, "color": INK, "line": {"width": 2, "color": INK}}
                    made.add(
                        scatter(
                            [place(one["trace"], system) for one in rows], [one["tokens_per_s"] for one in rows],
                            mode="markers", name=name, marker=look, showlegend=row == 1,
                        ),
                        row=row,
                    )  # fmt: skip
            made.x(row, tickvals=list(range(len(TRACES))), ticktext=list(TRACES))
            made.y(row, title="tokens/s", rangemode="tozero")

        return paint

    titles = {"a": "the chosen model on one accelerator", "b": "Llama-3-70B on eight"}
    painters = {name: (titles[name], painter(name)) for name in fig7.PANELS}
    return stack("Throughput on the four traces", painters, panel).set(barmode="overlay")


def toy(outcome: Outcome, _: str | None = None) -> Canvas:
    """Figure 1: compute and memory work of each step along the clock, for both orders."""
    if (steps := outcome.tables.get("steps")) is None:
        totals = outcome.tables["totals"]
        made = figure("No order takes less time", "", "seconds")
        return made.add(bar(totals["order"].to_list(), totals["seconds"].to_list(), name=WORDS["analytic"]))
    table = first(steps)
    palette = Palette(["compute", "memory"])
    names = table["order"].unique(maintain_order=True).to_list()

    def painter(name: str):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("order") == name)
            middle, width = (part["start_s"] + part["step_s"] / 2).to_list(), part["step_s"].to_list()
            for kind, sign in (("compute", 1), ("memory", -1)):
                busy = (part[f"{kind}_s"] / part["step_s"] * sign).to_list()
                made.add(
                    bar(
                        middle, busy, width=width, name=f"{kind} busy", showlegend=row == 1,
                        marker={"color": palette.colour(kind), "line": {"width": 0}},
                        hovertemplate="at %{x:.1f} s<extra>%{fullData.name}</extra>",
                    ),
                    row=row,
                )  # fmt: skip
            made.x(row, title="seconds", range=[0, float((table["start_s"] + table["step_s"]).max()) * 1.01])
            made.y(row, title="share of a step", tickvals=[-1, 0, 1], ticktext=["1", "0", "1"], range=[-1.1, 1.1])

        return paint

    painters = {name: (name, painter(name)) for name in names}
    return stack("Compute (up) and memory (down)", painters, None).set(barmode="overlay", bargap=0)


def ratio(outcome: Outcome, _: str | None = None) -> Canvas:
    """Figure 3: compute over memory time along the steps of both orders."""
    table = first(outcome.tables["ratio"])
    palette = Palette(SYSTEMS)
    made = figure("Compute over memory time along the run", "step", "compute over memory time")
    for (name,), part in table.group_by("order", maintain_order=True):
        made.add(_line(part, "step", "ratio", NF_DFS if name == fig3.BASE else BLEND, palette, str(name)))
    made.line(y=1.0, color=GREY, dash="dot", width=1)
    return log_axis(made, "y")


def _line(part: pl.DataFrame, x: str, y: str, name: str, palette: Palette, label: str = "") -> Trace:
    values = [
        value if value and value < 1e6 else None for value in part[y].to_list()
    ]  # nothing is read in a first step
    return scatter(
        part[x].to_list(), values, name=label or name, mode="lines", connectgaps=False,
        line={"color": palette.colour(name), "dash": palette.dash(name), "width": 2},
    )  # fmt: skip


def steps(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Figure 10: compute and memory time of the steps as ribbons, a panel for each order, the flattest last."""
    switch = outcome.tables["switch"]
    if (table := outcome.tables.get("steps")) is None:
        made = figure("The order down the tree turns from compute to memory", "", "step")
        return made.add(bar(switch["trace"].to_list(), switch["step"].to_list(), name=WORDS["analytic"]))
    table = first(table)
    palette = Palette(["compute", "memory"])
    longest = float(table["compute_s"].max())

    def painter(system: str):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("system") == system)
            for kind in ("compute", "memory"):
                trace = _line(part, "step", f"{kind}_s", kind, palette)
                made.add({**trace, "fill": "tozeroy", "showlegend": row == 1}, row=row)
            if system == NF_DFS:
                for (backend,), found in switch.group_by("backend", maintain_order=True):
                    dash = "dot" if backend == "analytic" else "dash"
                    made.line(x=float(found["step"][0]), row=row, color=GREY, dash=dash, width=1)
            made.x(row, title="step").y(row, title="seconds", range=[0, 1.1 * longest])

        return paint

    words = ["dotted by formula" if name == "analytic" else "dashed by the run" for name in switch["backend"]]
    titles = {NF_DFS: f"{NF_DFS}; where compute turns to memory: {', '.join(sorted(set(words), reverse=True))}"}
    painters = {system: (titles.get(system, system), painter(system)) for system in (NF_DFS, NF_BALANCE, BLEND)}
    return stack(f"Compute and memory time of the steps, {outcome.parameters['trace']}", painters, panel)


def disaggregated(outcome: Outcome, _: str | None = None) -> Canvas:
    """Figure 8: tokens per second and accelerator."""
    table = first(outcome.tables["throughput"])
    palette = Palette((*SYSTEMS, "disaggregated"))
    made = figure(f"Throughput of an accelerator, {outcome.parameters['trace']}", "", "tokens/s per accelerator")
    for kind in ("disaggregated", VLLM, BLEND):
        part = table.filter(
            pl.col("system") == kind if kind != "disaggregated" else ~pl.col("system").is_in([VLLM, BLEND])
        )
        values = part["tokens_per_s"].to_list()
        made.add(
            bar(
                part["system"].to_list(), values, name=kind, marker={"color": palette.colour(kind)},
                text=[f"{value:,.0f}" for value in values], textposition="outside", cliponaxis=False,
            )
        )  # fmt: skip
    return made.y(rangemode="tozero")


def sharing(outcome: Outcome, _: str | None = None) -> Canvas:
    """Figure 9: sharing ratio by trace and order."""
    table = first(outcome.tables["sharing"]).filter(pl.col("system") != NF_DFS)
    made = figure("Prefix sharing kept", "", "share of tokens that prefix hits saved")
    made.add(*grouped(table, "trace", "sharing", "system", Palette(SYSTEMS), digits=".1%"))
    known = {f"{fig9.KEPT}, {system}" for system in (BLEND, NF_BALANCE)}
    if outcome.published.filter(pl.col("series").is_in(list(known))).height:
        made.note(
            "published: BlendServe above 97 % of the largest, random order below 30 %",
            x=0.99, y=1.0, xref="paper", yref="paper", xanchor="right", yanchor="bottom", font={"size": 11},
        )  # fmt: skip
    return made.y(rangemode="tozero", tickformat=".0%").set(barmode="group")


def balance_gain(outcome: Outcome, _: str | None = None) -> Canvas:
    """§6.4: ratio of throughputs by trace, and the published mean over the first two."""
    table = first(outcome.tables["gain"])
    palette = Palette(SYSTEMS)
    made = figure(f"{BLEND} over a random order", "", "ratio of throughputs")
    values = table["gain"].to_list()
    made.add(
        bar(
            table["trace"].to_list(), values, name="gain", marker={"color": palette.colour(BLEND)},
            text=[f"{value:.2f}" for value in values], textposition="outside", cliponaxis=False,
        )
    )  # fmt: skip
    known = {"BlendServe over NanoFlow-Balance, mean": BLEND}
    made.add(*published_marks(outcome, palette, series=known, x={"Trace#1 and Trace#2": "Trace#2"}, on_bars=True))
    return made.y(rangemode="tozero")


def dfs_share(outcome: Outcome, _: str | None = None) -> Canvas:
    """§3.3: share of the practical optimum by trace, formula beside the run."""
    table = outcome.tables["shares"]
    if "replication" in table.columns:
        table = table.filter(pl.col("replication") == 0)
    palette = Palette(SYSTEMS)
    made = figure("Share of the practical optimum down the prefix tree", "", "share")
    for (backend,), part in table.group_by("backend", maintain_order=True):
        values = part["share"].to_list()
        if backend == table["backend"][0]:
            made.add(
                bar(
                    part["trace"].to_list(), values, name=WORDS[str(backend)],
                    marker={"color": palette.colour(NF_DFS), "opacity": 0.8}, text=[f"{v:.1%}" for v in values],
                    insidetextanchor="start", textfont={"color": "white"},
                )
            )  # fmt: skip
        else:
            mark = {"symbol": "circle", "size": 10, "color": GREY}
            made.add(scatter(part["trace"].to_list(), values, mode="markers", marker=mark, name=WORDS[str(backend)]))
    places = {"Llama-3-8B, one A100": list(TRACES)[-1]}
    known = {"throughput of DFS order over the practical optimum": NF_DFS}
    made.add(*published_marks(outcome, palette, series=known, x=places, on_bars=True))
    return made.y(range=[0, 1], tickformat=".0%")


def mixes(outcome: Outcome, _: str | None = None) -> Canvas:
    """Table 2: requests of each source by trace, on a logarithmic axis."""
    table = first(outcome.tables["mixes"])
    names = table.columns[table.columns.index("heavy_share") + 1 :]
    long = table.unpivot(names, index="trace", variable_name="source", value_name="count")
    made = figure("Requests of each source", "", "requests")
    made.add(*grouped(long, "trace", "count", "source", Palette(names), digits=",.0f"))
    return log_axis(made, "y", span=(50, 1e6)).set(barmode="group")
