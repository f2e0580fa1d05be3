"""Figure 6: how the KV memory is split between both ends, on the printed example."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.policy import memory_split
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment

_PAPER = "ASPLOS'26 paper Fig 6"
PLACE = "densities 3.73 and 0.096, root 1.27, 60 GB"
PRINTED = (3.73, 0.096, 1.27, 60.0)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    row = tables["split"].row(0, named=True)
    return (
        f"The compute-intensive end gets {row['left_bytes'] / 1e9:.2f} GB and the memory-intensive end "
        f"{row['right_bytes'] / 1e9:.2f} GB; their blend has a density of {row['blend']:.3g}."
    )


@experiment(
    "blendserve/fig6",
    title="Splitting the KV memory between both ends",
    question="How much memory does each end of the order get so that the blend has the density of all?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="blending_basics.split",
    say=_say,
    matches=(Match(tolerance=0.01),),
)
def fig6(
    context: Context,
    *,
    left: Annotated[
        float, Par("Density of the left end", low=0.05, high=100, log=True, status="published", source=_PAPER)
    ] = PRINTED[0],
    right: Annotated[
        float, Par("Density of the right end", low=0.01, high=10, log=True, status="published", source=_PAPER)
    ] = PRINTED[1],
    root: Annotated[
        float, Par("Density of all requests", low=0.05, high=10, log=True, status="published", source=_PAPER)
    ] = PRINTED[2],
    pool_gb: Annotated[
        float,
        Par("KV memory", "GB", low=1, high=1000, log=True, status="published", source=f"{_PAPER}: 80 GB less 20 GB"),
    ] = PRINTED[3],
) -> dict[str, pl.DataFrame]:
    """Both shares by formula, and the left share against the density of all."""
    pool = pool_gb * 1e9
    shares = memory_split(pool, left, right, root)
    blend = (shares[0] * left + shares[1] * right) / pool
    split = pl.DataFrame({"left_bytes": [shares[0]], "right_bytes": [shares[1]], "blend": [blend]})
    roots = np.geomspace(min(right, left) * 0.8, max(right, left) * 1.25, 81)
    curve = [
        {"root": float(one), "side": side, "bytes": value}
        for one in roots
        for side, value in zip(("left", "right"), memory_split(pool, left, right, float(one)), strict=True)
    ]
    printed = (left, right, root, pool_gb) == PRINTED
    place = PLACE if printed else f"densities {left:g} and {right:g}, root {root:g}, {pool_gb:g} GB"
    known = [
        (f"memory of the {side} side, {how}", place, value, "bytes")
        for how in ("as printed", "exact")
        for side, value in zip(("left", "right"), shares, strict=True)
    ]
    return {"split": split, "curve": pl.DataFrame(curve), "headline": headline(known)}
