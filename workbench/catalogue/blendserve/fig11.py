"""Figure 11: gain of the BurstGPT mix over density and sharing ratio."""

from typing import Any

import polars as pl

from workbench.catalogue.blendserve.heat import (
    GAIN,
    SHARINGS,
    SHORT,
    SLOPES,
    Densities,
    Sharings,
    cells,
    grid_headline,
    is_whole,
    say,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, MEASURED, On, Overlap, Requests, Scan, Served
from workbench.catalogue.context import Context
from workbench.catalogue.spec import Match, Ordering, experiment

DENSITIES = tuple(round(0.8 + 0.05 * place, 2) for place in range(13))
SERIES = {density: f"{GAIN}, density {density:.2f}, x = sharing ratio" for density in DENSITIES}
LOWEST, HIGHEST = (f"{GAIN}, mean of the row of {which} density" for which in ("lowest", "highest"))
SPREAD = "spread over the sharing ratio at one density [acceptance]"


@experiment(
    "blendserve/fig11",
    title="Gain over density and sharing: BurstGPT mix",
    question="For which mixes of BurstGPT, MMLU and OpenVid does a blended order gain most?",
    backends=("compiled",),
    seconds={"compiled": 120},
    draw="blending_maps.heat",
    say=say,
    stochastic=True,
    matches=(
        Match(tuple(SERIES.values()), assumptions=(SLOPES,)),
        Match(assumptions=(SLOPES, SHORT)),
        Match(
            ("prototype: dual scan over NanoFlow-DFS over densities 0.8 to 1.4",),
            incomparable={"": "an earlier variant of the scan, which put long requests first"},
        ),
        Match(
            ("error of the authors' simulated speed-up",),
            incomparable={"four traces": "it compares their simulator with their accelerators; none is at hand"},
        ),
        Match(
            (SPREAD,),
            incomparable={
                "": "one run of a cell holds a few hundred videos, which move it by some 0.02; repeat the run"
            },
        ),
    ),
    orderings=(Ordering("the gain rises with the density", (LOWEST, HIGHEST), assumptions=(SLOPES,)),),
)
def fig11(
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
    """A cell is a mix of its own; its gain is the ratio of throughputs."""
    table = cells(context, "burstgpt-like", model, accelerator, densities, sharings, requests, scan, overlap, SERIES)
    gain = table["gain"]
    spread = table.group_by("density").agg(pl.col("gain").max() - pl.col("gain").min())["gain"].max()
    rows = table.group_by("density").agg(pl.mean("gain")).sort("density")
    more: list[tuple[Any, ...]] = [
        (f"{GAIN}, mean of the grid", "", gain.mean(), "1"),
        (f"{GAIN}, mean of the 65 printed cells", "", gain.mean(), "1"),
        (f"{GAIN}, smallest of the grid", "", gain.min(), "1"),
        (f"{GAIN}, largest of the grid", "", gain.max(), "1"),
        (SPREAD, "", spread, "1"),
        (LOWEST, "", rows["gain"][0], "1"),
        (HIGHEST, "", rows["gain"][-1], "1"),
    ]
    return {"cells": table, "headline": grid_headline(table, more if is_whole(table, DENSITIES, SHARINGS) else ())}
