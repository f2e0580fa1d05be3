"""Figure 13: gain of the Azure mix over density and sharing ratio."""

import polars as pl

from workbench.catalogue.blendserve.heat import (
    SHARINGS,
    SHORT,
    SLOPES,
    Densities,
    Sharings,
    cells,
    row_series,
    rows_headline,
    say,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, MEASURED, On, Overlap, Requests, Scan, Served
from workbench.catalogue.context import Context
from workbench.catalogue.spec import Match, experiment

ROWS = {1: 1.0, 3: 1.12, 5: 1.2, 7: 1.4, 9: 1.73}
"""Densities of the rows that have a printed label, of 9 rows."""
DENSITIES = tuple(ROWS.values())
SERIES = row_series("Azure", ROWS, 9)


@experiment(
    "blendserve/fig13",
    title="Gain over density and sharing: Azure mix",
    question="Does a blended order gain as much when Azure is the compute source?",
    backends=("compiled",),
    seconds={"compiled": 60},
    draw="blending_maps.heat",
    say=say,
    stochastic=True,
    matches=(Match(assumptions=(SLOPES, SHORT)),),
)
def fig13(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    densities: Densities = DENSITIES,
    sharings: Sharings = SHARINGS,
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:
    """A cell is a mix of its own; its gain is the ratio of throughputs. Rows without a printed label are left out."""
    table = cells(context, "azure-like", model, accelerator, densities, sharings, requests, scan, overlap)
    return {"cells": table, "headline": rows_headline(table, SERIES, "Azure")}
