"""Table 4: sharing ratio and compute density of the six sources."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.blendserve.jobs import costs_for
from workbench.catalogue.blendserve.parameters import On, Served
from workbench.catalogue.blendserve.sources import AT_MEANS, at_the_means, draws, labels
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Match, experiment

FITTED = ("BurstGPT", "ShareGPT", "WildChat", "OpenVid")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["sources"].filter(pl.col("replication") == 0).sort("sharing")
    most = table.row(-1, named=True)
    return (
        f"Prefixes save {most['sharing']:.1%} of the computation of {most['source']}, at a density of "
        f"{most['density']:.3g}; of the others at most {table['sharing'][-2]:.1%}."
    )


@experiment(
    "blendserve/tab4",
    title="Sharing ratio and density of the sources",
    question="How much of each source can prefix hits save, and how dense is what is left?",
    backends=("analytic",),
    seconds={"analytic": 1},
    draw="blending_basics.sharing_and_density",
    say=_say,
    stochastic=True,
    matches=(
        Match(("compute density",), tolerance=0.05, fitted=FITTED),
        Match(("prefix sharing ratio",), tolerance=0.3, fitted=ALL),
    ),
)
def tab4(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    drawn: Annotated[
        int,
        Par("Requests drawn from each", low=10_000, high=400_000, step=10_000, free=True, source="chance error < 2 %"),
    ] = 200_000,
) -> dict[str, pl.DataFrame]:
    """Sharing ratios, on which shared prefixes were fitted, and densities; MMLU and Azure at their printed means."""
    costs = costs_for(context, model, accelerator)
    means = {row["source"]: row["density"] for row in at_the_means(costs)}
    rows = []
    for label, name in labels().items():
        if label != "LIMO":
            found = draws(name, drawn, costs, context.seed)
            density = means[label] if label in AT_MEANS else found.density
            rows.append({"source": label, "sharing": found.sharing, "density": density})
    known = [("prefix sharing ratio", row["source"], row["sharing"], "1") for row in rows]
    known += [("compute density", row["source"], row["density"], "1") for row in rows]
    return {"sources": pl.DataFrame(rows), "headline": headline(known)}
