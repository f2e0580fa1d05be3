"""What GPUs do when: switches, prompts and turns of each model as bars along time."""

import polars as pl

from workbench.catalogue.aegaeon import fig2, fig6
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import GREY, Palette
from workbench.figures.canvas import Canvas
from workbench.figures.panels import stack
from workbench.figures.pooling_formulas import spans

MODELS = ("model A", "model B", "model C")


def gantt(made: Canvas, row: int, table: pl.DataFrame, palette: Palette, *, legend: bool) -> None:
    """Bars of one way to serve: a row a GPU, colours by model, prompts hatched, switches grey."""
    for what in ("switch", "prompt", "turn"):
        part = table.filter(pl.col("what") == what)
        models = [None] if what == "switch" else sorted(part["model"].unique().to_list())
        for model in models:
            found = part if model is None else part.filter(pl.col("model") == model)
            rows = [
                (f"GPU {gpu + 1}", begin, end)
                for gpu, begin, end in found.select("gpu", "start_s", "end_s").iter_rows()
            ]
            name = "switch" if model is None else MODELS[model] + (", prompt" if what == "prompt" else "")
            colour = GREY if model is None else palette.colour(MODELS[model])
            trace = spans(rows, name, colour, showlegend=legend, legendgroup=name)
            trace["marker"] = trace["marker"] | {"pattern": {"shape": "/" if what == "prompt" else ""}}
            made.add(trace, row=row)
    made.x(row, title="seconds", rangemode="tozero").y(row, autorange="reversed")


def _panel(outcome: Outcome, way: str, words: str, *, legend: bool):
    table, palette = outcome.tables["spans"].filter(pl.col("way") == way), Palette(MODELS)
    return words, lambda made, row: gantt(made, row, table, palette, legend=legend)


def three(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 2: one GPU and three models, by whole requests and token by token."""
    painters = {
        "whole": _panel(outcome, fig2.REQUESTS, "by whole requests", legend=True),
        "tokens": _panel(outcome, fig2.TOKENS, "token by token", legend=panel == "tokens"),
    }
    return stack("Three models on one GPU", painters, panel, (0.6, 0.6)).set(barmode="overlay")


def policies(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 6: two GPUs, prompts first, decoding first, and one GPU each."""
    misses = {row["way"]: row for row in outcome.tables["misses"].to_dicts()}
    painters = {}
    for name, way in zip(("prompts", "decoding", "apart"), fig6.WAYS, strict=True):
        late = f"{misses[way]['ttft']} first tokens late, {misses[way]['tbt']} requests late in between"
        painters[name] = _panel(
            outcome, way, f"{way}: {late}", legend=panel == name or (panel is None and name == "prompts")
        )
    return stack("Prompts and decoding on two GPUs", painters, panel, (0.7, 0.7, 0.7)).set(barmode="overlay")
