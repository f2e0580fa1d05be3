"""Figure 15: gain of the WildChat mix over density and sharing ratio."""

import polars as pl

from workbench.catalogue.blendserve.heat import (
    Rows,
    Sharings,
    cells,
    row_matches,
    row_series,
    rows_headline,
    say,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, MEASURED, On, Overlap, Requests, Scan, Served
from workbench.catalogue.context import Context
from workbench.catalogue.spec import experiment

SHARINGS = (0.2, 0.25, 0.3, 0.35, 0.4)
LABELS = (0.8, 1.0, 1.2, 1.4, 1.6)
"""Densities that are printed beside the map: those of every second of its 9 rows."""
SERIES = row_series("WildChat", LABELS, 9)
DENSITIES = tuple(SERIES)


@experiment(
    "blendserve/fig15",
    title="Gain over density and sharing: WildChat mix",
    question="Does a blended order gain as much when WildChat is the compute source?",
    backends=("compiled",),
    seconds={"compiled": 65},
    draw="blending_maps.heat",
    say=say,
    stochastic=True,
    matches=row_matches(SERIES),
)
def fig15(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    densities: Rows = DENSITIES,
    sharings: Sharings = SHARINGS,
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:
    """A cell is a mix of its own; its gain is the ratio of throughputs."""
    table = cells(context, "wildchat-like", model, accelerator, densities, sharings, requests, scan, overlap, SERIES)
    return {"cells": table, "headline": rows_headline(table, SERIES, "WildChat", SHARINGS)}
