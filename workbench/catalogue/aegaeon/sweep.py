"""Curves of attainment against models or rate, by system: what Figures 11 to 13 share."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from workbench.catalogue.aegaeon.pools import GOOD, METRICS, crossing, rates_of, realised, serve
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.pooling import PoolRun


class Curve(NamedTuple):
    """One curve of a panel.

    Attributes:
        panel: its axis, and by its first letter where it is drawn.
        label: what it is called.
        system, variant: who serves, and as whom.
        options: further keywords of `serve`.
    """

    panel: str
    label: str
    system: str
    variant: str
    options: Mapping[str, Any] = {}


class Axis(NamedTuple):
    """What a panel varies.

    Attributes:
        places: models, or rates per model, to try.
        models, rate_per_s: what the other of the two is held at; None for the one that varies.
        duration_s: of the trace. scale: of the promise.
    """

    places: Sequence[float]
    duration_s: float
    models: int | None = None
    rate_per_s: float | None = None
    scale: float = 1.0


def sweep(
    context: Context, curves: Iterable[Curve], axes: Mapping[str, Axis], common: Mapping[str, Any],
    before: pl.DataFrame | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Attainment of every curve at every place of its panel: `panel, label, models, rate_per_s, x`, one column a
    definition, `realised` and `switches_per_s`; beneath what was found before."""
    rows = [] if before is None else before.to_dicts()
    for curve in curves:
        axis = axes[curve.panel]
        for place in axis.places:
            models = int(place) if axis.models is None else axis.models
            rate = float(place) if axis.rate_per_s is None else axis.rate_per_s
            context.tell(f"panel {curve.panel}, {curve.label}: {models} models at {rate:g} per s")
            run = serve(
                context, models, rate, axis.duration_s, system=curve.system, variant=curve.variant,
                ttft_s=10.0 * axis.scale, tbt_s=0.1 * axis.scale, **common, **curve.options,
            )  # fmt: skip
            rows.append(_row(curve, axis, models, rate, float(place), run))
        context.so_far({"curve": pl.DataFrame(rows)})
    return pl.DataFrame(rows)


def _row(curve: Curve, axis: Axis, models: int, rate: float, x: float, run: PoolRun) -> dict[str, Any]:
    about = {"panel": curve.panel[0], "label": curve.label, "models": models, "rate_per_s": rate, "x": x}
    return about | rates_of(run, axis.scale) | {"realised": realised(run, models, rate, axis.duration_s)}


def reach(table: pl.DataFrame, panel: str, label: str, metric: str) -> float:
    """Where a curve falls below 90 %; NaN where it does not."""
    part = table.filter((pl.col("panel") == panel) & (pl.col("label") == label)).sort("x")
    return crossing(part["x"].to_list(), part[metric].to_list())


def values_at(
    table: pl.DataFrame, panel: str, label: str, metric: str, series: str
) -> list[tuple[str, object, float, str]]:
    """Headline rows of a curve."""
    part = table.filter((pl.col("panel") == panel) & (pl.col("label") == label))
    return [(series, x, value, "1") for x, value in part.select("x", metric).iter_rows()]


def ends_by_definition(
    table: pl.DataFrame, panel: str, label: str, series: str, x: str
) -> list[tuple[str, object, float, str]]:
    """Headline rows of where a curve falls below 90 % by each definition of attainment."""
    return [(f"{series}, by {metric}", x, reach(table, panel, label, metric), "1") for metric in METRICS]


def told(rows: Iterable[tuple[str, object, float, str]]) -> pl.DataFrame:
    """The headline of rows that are numbers."""
    return headline(row for row in rows if not math.isnan(row[2]))


def say_reach(panels: Mapping[str, str], unit: str) -> Callable[..., str]:
    """A sentence on where the first curve of each panel falls below 90 %, and the second."""

    def say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
        table = tables["curve"].filter(pl.col("backend") == tables["curve"]["backend"][0])
        metric, parts = parameters.get("metric", "qos-artifact"), []
        for panel, words in panels.items():
            here = table.filter(pl.col("panel") == panel)
            texts = []
            for label in here["label"].unique(maintain_order=True).to_list():
                mean = here.filter(pl.col("label") == label).group_by("x").agg(pl.col(metric).mean()).sort("x")
                end = crossing(mean["x"].to_list(), mean[metric].to_list())
                place = f"beyond {mean['x'].max():g}" if math.isnan(end) else f"{end:.3g}"
                texts.append(f"{label} {place}")
            if texts:
                parts.append(f"{words}: {', '.join(texts)}")
        return f"{GOOD:.0%} attainment ends at so many {unit}; " + "; ".join(parts) + "."

    return say
