"""Figure 13: gain of the Azure mix over density and sharing ratio."""

import polars as pl

from workbench.catalogue.blendserve.heat import (
    SHARINGS,
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

LABELS = (1.0, 1.12, 1.2, 1.4, 1.73)
"""Densities that are printed beside the map: those of every second of its 9 rows."""
SERIES = row_series("Azure", LABELS, 9)
DENSITIES = tuple(SERIES)


@experiment(
    "blendserve/fig13",
    title="Gain over density and sharing: Azure mix",
    question="Does a blended order gain as much when Azure is the compute source?",
    backends=("compiled",),
    seconds={"compiled": 60},
    draw="blending_maps.heat",
    say=say,
    stochastic=True,
    matches=row_matches(SERIES),
)
def fig13(
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
    table = cells(context, "azure-like", model, accelerator, densities, sharings, requests, scan, overlap, SERIES)
    return {"cells": table, "headline": rows_headline(table, SERIES, "Azure", SHARINGS)}
