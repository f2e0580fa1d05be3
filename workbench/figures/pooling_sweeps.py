"""Attainment of pools against models, rate and settings: one curve a system, with its range over runs."""

from collections.abc import Collection, Iterable, Mapping

import polars as pl

from workbench.catalogue.aegaeon import fig11, fig12, fig13
from workbench.catalogue.aegaeon.pools import AEGAEON, GOOD, METRICS, MUX, PLUS, SLLM
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, SYMBOLS, WORDS, Palette, published_marks
from workbench.figures.canvas import Canvas, Trace, scatter
from workbench.figures.panels import stack

_GOOD = f"dotted: {GOOD:.0%}"
LABELS = (AEGAEON, fig11.SIMULATED, SLLM, PLUS, MUX, fig11.PACE)


def averaged(table: pl.DataFrame, x: str, y: str) -> pl.DataFrame:
    """Mean, smallest and largest over runs at each place: `x, y, low, high`."""
    part = table.select(pl.col(x).cast(pl.Float64).alias("x"), pl.col(y).alias("y")).filter(pl.col("y").is_not_nan())
    return part.group_by("x").agg(pl.col("y").mean(), low=pl.col("y").min(), high=pl.col("y").max()).sort("x")


def curve_with_range(
    table: pl.DataFrame, x: str, y: str, label: str, palette: Palette, *, legend: bool = True
) -> list[Trace]:
    """One curve: a line for the formula and for compiled runs, marks for simulated ones; a bar where runs differ."""
    traces = []
    for (backend,), part in table.group_by("backend", maintain_order=True):
        found, colour = averaged(part, x, y), palette.colour(label)
        if found.is_empty():
            continue
        style = {"color": colour, "symbol": SYMBOLS[backend], "size": 6 if backend == "compiled" else 10}
        lines = backend in ("analytic", "compiled") and len(found) > 1
        trace = scatter(
            found["x"].to_list(),
            found["y"].to_list(),
            mode="lines" if backend == "analytic" else "lines+markers" if lines else "markers",
            name=f"{label} ({WORDS[backend]})",
            line={"color": colour, "dash": palette.dash(label), "width": 2},
            marker=style | {"line": {"width": 2, "color": colour}},
            legendgroup=label,
            showlegend=legend,
        )
        if (found["high"] > found["low"]).any():
            trace["error_y"] = {
                "type": "data", "symmetric": False, "array": (found["high"] - found["y"]).to_list(),
                "arrayminus": (found["y"] - found["low"]).to_list(), "thickness": 1, "color": colour,
            }  # fmt: skip
        traces.append(trace)
    return traces


def attained(
    outcome: Outcome,
    palette: Palette,
    panel: str,
    labels: Iterable[str],
    marks: Mapping[str, str],
    x_title: str,
    *,
    legend: bool,
    told: Collection[str] = (),
):
    """A painter of one panel of curves of attainment.

    Parameters:
        labels: curves to draw, of the table `curve`. marks: published series -> label.
        legend: whether curves have entries. told: labels whose published marks have entries.
    """
    table, metric = outcome.tables["curve"], outcome.parameters["metric"]

    def paint(made: Canvas, row: int) -> None:
        for label in labels:
            part = table.filter((pl.col("panel") == panel) & (pl.col("label") == label))
            made.add(*curve_with_range(part, "x", metric, label, palette, legend=legend), row=row)
        for trace in published_marks(outcome, palette, series=marks):
            label = marks.get(_series(trace, marks), "")
            name = f"{label}: authors' simulator, rerun" if label else trace["name"]
            made.add({**trace, "name": name, "showlegend": not label or label in told}, row=row)
        made.line(y=GOOD, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title=x_title, rangemode="tozero").y(row, title=f"attainment ({metric})", range=[0, 1.05])

    return paint


def by_definition(outcome: Outcome):
    """Title and painter of a panel: one curve by all four definitions of attainment, Aegaeon's where it was run."""
    table, palette = outcome.tables["curve"], Palette(METRICS)
    label = AEGAEON if AEGAEON in table["label"] else table["label"][0]
    table = table.filter(pl.col("label") == label)
    first = table["panel"][0]

    def paint(made: Canvas, row: int) -> None:
        for metric in METRICS:
            made.add(*curve_with_range(table.filter(pl.col("panel") == first), "x", metric, metric, palette), row=row)
        made.line(y=GOOD, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="models", rangemode="tozero").y(row, title="attainment", range=[0, 1.05])

    return f"panel {first}, {label}, by all four definitions; {_GOOD}", paint


def _series(trace: Trace, marks: Mapping[str, str]) -> str:
    return next((name for name in marks if trace["name"].startswith(name)), "")


def systems(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 11: attainment against models at two rates, and against the rate with 40 models."""
    palette, known = Palette(LABELS), outcome.tables["curve"]["label"].unique().to_list()
    labels = [label for label in LABELS if label in known]
    own = {AEGAEON: fig11.SIMULATED, SLLM: SLLM, PLUS: PLUS}
    series = set(outcome.published["series"])

    def marks(name: str, x: str) -> dict[str, str]:
        found = {f"panel {name} rerun: attainment, {system}, x = {x}": label for system, label in own.items()}
        return {text: label for text, label in found.items() if text in series}

    def one(name: str, x: str, title: str):
        first = panel == name or (panel is None and name == "a")
        return attained(
            outcome, palette, name, labels, marks(name, x), title, legend=first, told=LABELS if first else ()
        )

    painters = {
        "a": (f"0.1 requests per s and model; {_GOOD}", one("a", "models", "models")),
        "b": (f"0.5 requests per s and model; {_GOOD}", one("b", "models", "models")),
        "c": (f"40 models; {_GOOD}", one("c", "rate per model in 1/s", "requests per s and model")),
        "definitions": by_definition(outcome),
    }
    return stack("Models that 16 GPUs serve", painters, panel)


def longer(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 12: attainment against models with prompts, and outputs, twice as long."""
    palette, known = Palette(LABELS), outcome.tables["curve"]["label"].unique().to_list()
    labels = [label for label in LABELS if label in known]
    painters = {}
    for name, (rate, prompt, _) in fig12.PANELS.items():
        words = "prompts" if prompt > 1 else "outputs"
        first = panel == name or (panel is None and name == "a")
        painters[name] = (
            f"{words} twice as long, {rate:g} requests per s and model; {_GOOD}",
            attained(outcome, palette, name, labels, {}, "models", legend=first),
        )
    painters["definitions"] = by_definition(outcome)
    return stack("Longer prompts and outputs", painters, panel)


def _told(panel: str, first: bool) -> tuple[str, ...]:
    """Whose marks a panel explains: ServerlessLLM was rerun for the last one only."""
    return (*((fig11.SIMULATED,) if first else ()), *((SLLM,) if panel == "c" else ()))


def strict(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 13: attainment of stricter promises against models."""
    palette, known = Palette(LABELS), outcome.tables["curve"]["label"].unique().to_list()
    labels = [label for label in LABELS if label in known]
    series = set(outcome.published["series"])
    painters = {}
    for name, scale in fig13.SCALES.items():
        marks = {
            f"panel {name} rerun: attainment at SLO x {scale:g}, {system}, x = models": label
            for system, label in {AEGAEON: fig11.SIMULATED, SLLM: SLLM}.items()
        }
        marks = {text: label for text, label in marks.items() if text in series}
        first = panel == name or (panel is None and name == "a")
        painters[name] = (
            f"{10 * scale:g} s to the first token, {100 * scale:g} ms between tokens; {_GOOD}",
            attained(outcome, palette, name, labels, marks, "models", legend=first, told=_told(name, first)),
        )
    painters["definitions"] = by_definition(outcome)
    return stack("Stricter promises, 0.1 requests per s and model", painters, panel)
