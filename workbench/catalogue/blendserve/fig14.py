"""Figure 14: gain of the ShareGPT mix over density and sharing ratio."""

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

ROWS = {1: 0.8, 3: 0.9, 5: 1.0, 7: 1.2, 9: 1.4}
"""Densities of the rows that have a printed label, of 10 rows."""
DENSITIES = tuple(ROWS.values())
SERIES = row_series("ShareGPT", ROWS, 10)


@experiment(
    "blendserve/fig14",
    title="Gain over density and sharing: ShareGPT mix",
    question="Does a blended order gain as much when ShareGPT is the compute source?",
    backends=("compiled",),
    seconds={"compiled": 60},
    draw="blending_maps.heat",
    say=say,
    stochastic=True,
    matches=(Match(assumptions=(SLOPES, SHORT)),),
)
def fig14(
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
    table = cells(context, "sharegpt-like", model, accelerator, densities, sharings, requests, scan, overlap)
    return {"cells": table, "headline": rows_headline(table, SERIES, "ShareGPT")}
