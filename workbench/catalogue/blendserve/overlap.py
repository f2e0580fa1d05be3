"""How much overlapping can bring: slopes from measured shares of an accelerator, and the most that any order gains."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.interference import facts, hull, nanoflow_slopes
from workbench.blending.model.questions import largest_gain, reordering_gain
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment

SUM_OVER_MAX, SUM_OVER_OV = "f_sum over f_max", "f_sum over f_ov"
LARGEST = "largest gain that reordering can give"
DENSITIES = np.geomspace(0.05, 20, 121)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    rows = {row["overlap"]: row for row in tables["largest"].iter_rows(named=True)}
    measured, ideal = rows[SUM_OVER_OV], rows[SUM_OVER_MAX]
    return (
        f"With these slopes reordering gains at most {measured['gain']:.2f} times, at a density of "
        f"{measured['density']:.2f}; with perfect overlap {ideal['gain']:.2f} times, at {ideal['density']:.2f}."
    )


@experiment(
    "blendserve/overlap",
    title="What overlapping can bring",
    question="Compute and memory work disturb each other: how much can any order gain at best?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="blending_basics.overlap",
    panels=("rates", "gain"),
    say=_say,
    matches=(
        Match(tolerance=1e-6),
        Match(
            ("median relative error of the fitted f_ov [acceptance]",),
            incomparable={"real run": "it takes kernels that run beside each other on an accelerator; none was there"},
        ),
    ),
)
def overlap(
    context: Context,
    *,
    memory_slope: Annotated[
        float,
        Par("a: memory time added where compute is longer", low=0.0, high=0.95, step=0.05, status="inferred",
            source="hull of NanoFlow Table 3"),
    ] = 0.5,
    compute_slope: Annotated[
        float,
        Par("b: compute time added where memory is longer", low=0.0, high=0.95, step=0.05, status="inferred",
            source="hull of NanoFlow Table 3"),
    ] = 1 / 3,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """The gain of overlapping over doing one thing after the other, by density, and where it is largest."""
    shares = facts().nanoflow
    context.cite("rates beside each other", "Table 3", "", shares.status, shares.source)
    products = 1 - np.array(shares.attention_share)
    points = [
        {"kind": "measured", "products": float(x), "attention": y}
        for x, y in zip(products, shares.attention_rate, strict=True)
    ] + [{"kind": "hull", "products": x, "attention": y} for x, y in hull(products, shares.attention_rate).corners]
    slopes = {SUM_OVER_OV: (memory_slope, compute_slope), SUM_OVER_MAX: (0.0, 0.0)}
    curve = [
        {"overlap": name, "density": float(density), "gain": float(gain)}
        for name, pair in slopes.items()
        for density, gain in zip(DENSITIES, reordering_gain(DENSITIES, *pair), strict=True)
    ]
    most = [dict(zip(("overlap", "density", "gain"), (name, *largest_gain(*pair)), strict=True))
            for name, pair in slopes.items()]  # fmt: skip
    fitted = nanoflow_slopes()
    known = [(LARGEST, row["overlap"], row["gain"], "1") for row in most]
    known.append(("weight a of memory time in T_c + a T_m", "f_ov", fitted[0], "1"))
    known.append(("weight b of compute time in T_m + b T_c", "f_ov", fitted[1], "1"))
    return {"rates": pl.DataFrame(points), "gain": pl.DataFrame(curve), "largest": pl.DataFrame(most),
            "headline": headline(known)}  # fmt: skip
