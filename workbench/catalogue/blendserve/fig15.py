"""Figure 15: gain of the WildChat mix over density and sharing ratio."""

import polars as pl

from workbench.catalogue.blendserve.heat import (
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

SHARINGS = (0.2, 0.25, 0.3, 0.35, 0.4)
ROWS = {1: 0.8, 3: 1.0, 5: 1.2, 7: 1.4, 9: 1.6}
"""Densities of the rows that have a printed label, of 9 rows."""
DENSITIES = tuple(ROWS.values())
SERIES = row_series("WildChat", ROWS, 9)


@experiment(
    "blendserve/fig15",
    title="Gain over density and sharing: WildChat mix",
    question="Does a blended order gain as much when WildChat is the compute source?",
    backends=("compiled",),
    seconds={"compiled": 60},
    draw="blending_maps.heat",
    say=say,
    stochastic=True,
    matches=(Match(assumptions=(SLOPES, SHORT)),),
)
def fig15(
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
    table = cells(context, "wildchat-like", model, accelerator, densities, sharings, requests, scan, overlap)
    return {"cells": table, "headline": rows_headline(table, SERIES, "WildChat")}
