"""Figures 11 and 13 to 15 side by side: mean gain of the four compute sources over cells that all of them print."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.blendserve.heat import GAIN, SHORT, SLOPES, cells
from workbench.catalogue.blendserve.parameters import BIASED, FEEDBACK, MEASURED, On, Overlap, Requests, Scan, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.published import published
from workbench.catalogue.spec import Assumption, Ordering, experiment
from workbench.errors import UserError

SOURCES = {
    "BurstGPT": "burstgpt-like", "Azure": "azure-like", "ShareGPT": "sharegpt-like", "WildChat": "wildchat-like",
}  # fmt: skip
DENSITIES, SHARINGS = (1.0, 1.2, 1.4), (0.25, 0.35)
FIGURES = {"BurstGPT": "fig11", "Azure": "fig13", "ShareGPT": "fig14", "WildChat": "fig15"}
ORDERS = tuple((low, high) for low in ("ShareGPT", "WildChat") for high in ("Azure", "BurstGPT"))


def _series(source: str) -> str:
    return f"{GAIN}, mean of six cells, {source}"


def printed(source: str) -> float:
    """Mean of the six cells as a source's figure prints them."""
    table = published(f"blendserve/{FIGURES[source]}")
    rows = "|".join(f"density {density:.2f}" for density in DENSITIES)
    cells = pl.col("series").str.contains(rows) & pl.col("x").is_in([f"{ratio:g}" for ratio in SHARINGS])
    return table.filter(cells)["value"].mean()


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["means"].filter(pl.col("replication") == 0).sort("gain", descending=True)
    parts = ", ".join(f"{row['gain']:.3f} with {row['source']}" for row in table.iter_rows(named=True))
    return f"Over the same cells a blended order gains {parts}."


@experiment(
    "blendserve/four-sources",
    title="Gain by compute source",
    question="Does a blended order gain less where outputs vary for reasons that prefixes do not tell?",
    backends=("compiled",),
    seconds={"compiled": 40},
    draw="blending_maps.four_sources",
    say=_say,
    stochastic=True,
    orderings=tuple(
        Ordering(
            f"{low} gains less than {high} (means of six cells)",
            (_series(low), _series(high)),
            assumptions=(
                SLOPES,
                SHORT,
                Assumption("the dense batch follows the memory time of every step", {"scan": BIASED}),
            ),
        )
        for low, high in ORDERS
    ),
)
def four_sources(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    densities: Annotated[
        tuple[float, ...], Par("Densities", low=0.3, high=3.0, status="published", source="rows that all four print")
    ] = DENSITIES,
    sharings: Annotated[
        tuple[float, ...],
        Par("Sharing ratios", low=0.2, high=0.6, status="published", source="columns that all four print"),
    ] = SHARINGS,
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:
    """Mean gain over the order down the tree by compute source, on equal densities and sharing ratios.

    In quick mode one cell stands for all.
    """
    if context.mode == "quick":
        densities, sharings = densities[len(densities) // 2 :][:1], sharings[:1]
    rows = []
    for source, main in SOURCES.items():
        context.tell(source)
        table = cells(context, main, model, accelerator, densities, sharings, requests, scan, overlap)
        if lacking := table["impossible"].filter(table["impossible"] != "").to_list():
            raise UserError(lacking[0])  # means of unequal cells say nothing
        rows.append({"source": source, "gain": table["gain"].mean(), "printed": printed(source)})
        context.so_far({"means": pl.DataFrame(rows)})
    known = [(_series(row["source"]), "", row["gain"], "1") for row in rows]
    return {"means": pl.DataFrame(rows), "headline": headline(known)}
