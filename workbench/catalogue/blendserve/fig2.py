"""Figure 2: lengths of the sources, and their compute densities."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.density import request_density
from workbench.catalogue.blendserve.jobs import costs_for
from workbench.catalogue.blendserve.parameters import On, Served
from workbench.catalogue.blendserve.sources import AT_MEANS, LENGTH_FILES, at_the_means, draws, labels, mean_of_file
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, Ordering, experiment

DENSITY = "compute density"
FITTED = ("BurstGPT", "ShareGPT", "WildChat", "OpenVid", "LIMO")
ORDER = ("OpenVid", "LIMO", "WildChat", "ShareGPT", "BurstGPT", "Azure-Trace", "MMLU")
AT_MEAN = "compute density at the mean lengths"
FILE_MEANS = "density at the mean lengths, Llama-3-8B on A100 at peak"
SAMPLE = tuple(
    f"{what} {side} tokens, NanoFlow's sample of the same dump"
    for side in ("prompt", "output")
    for what in ("mean", "standard deviation of")
)
BINS = np.geomspace(1, 131_072, 52)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["densities"].filter(pl.col("replication") == 0).sort("density")
    low, high = table.row(0, named=True), table.row(-1, named=True)
    heavy = ", ".join(table.filter(pl.col("density") < 1)["source"])
    return (
        f"Densities run from {low['density']:.2g} ({low['source']}) to {high['density']:.3g} ({high['source']}), a "
        f"factor of {high['density'] / low['density']:,.0f}; memory-intensive are {heavy or 'none'}."
    )


@experiment(
    "blendserve/fig2",
    title="Lengths and densities of the sources",
    question="How long do requests of each kind compute, over how long they read memory?",
    backends=("analytic",),
    seconds={"analytic": 1},
    draw="blending_basics.sources",
    panels=("prompts", "outputs", "densities"),
    say=_say,
    stochastic=True,
    matches=(
        Match((DENSITY,), tolerance=0.15, fitted=FITTED),
        Match(("mean prompt tokens",), tolerance=0.03, fitted=ORDER),
        Match(("mean output tokens, normalised",), tolerance=0.05, fitted=ORDER),
        Match(SAMPLE, fitted=("ShareGPT",)),
        Match((AT_MEAN, f"{AT_MEAN} over the printed one"), tolerance=0.02),
        Match(("mean output tokens, raw",), tolerance=0.05, fitted=ORDER, incomparable=dict.fromkeys(
            ("WildChat", "OpenVid"), "only the lengths that the paper normalised are modelled, and judged in their row"
        )),
        Match(
            (*(f"mean {side} tokens, NanoFlow length file" for side in ("prompt", "output")),
             "density summed over requests, Llama-3-8B on A100 at peak"),
            incomparable=dict.fromkeys(LENGTH_FILES, "it takes the file itself, another project's, which is not held"),
        ),
        Match((FILE_MEANS,), tolerance=0.02),
    ),
    orderings=(
        Ordering("densities rise from OpenVid to MMLU", tuple(f"density of {label}" for label in ORDER)),
    ),
)  # fmt: skip
def fig2(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    drawn: Annotated[
        int,
        Par("Requests drawn from each", low=10_000, high=400_000, step=10_000, free=True, source="chance error < 2 %"),
    ] = 200_000,
) -> dict[str, pl.DataFrame]:
    """Histograms of prompt and output tokens, and (1 - s) Σ Comp / Σ Mem of each source.

    MMLU and Azure are also taken at their printed means; the length models of the others are calibrated on the density.
    """
    costs = costs_for(context, model, accelerator)
    bins, densities, known = [], [], []
    at_means = at_the_means(costs)
    mean_density = {row["source"]: row["density"] for row in at_means}
    for label, name in labels().items():
        found = draws(name, drawn, costs, context.seed)
        for side, tokens in (("prompt", found.prompt), ("output", found.output)):
            counts, _ = np.histogram(tokens, BINS)
            bins += [
                {"source": label, "side": side, "tokens": float(BINS[k]), "share": counts[k] / drawn}
                for k in np.flatnonzero(counts)
            ]
        density = mean_density[label] if label in AT_MEANS else found.density
        densities.append({"source": label, "density": density, "drawn": found.density, "sharing": found.sharing})
        known += [(DENSITY, label, density, "1"), (f"density of {label}", "", density, "1")]
        known += _lengths(label, found.prompt, found.output)
    for row in at_means:
        known.append((AT_MEAN, row["source"], row["density"], "1"))
        known.append((f"{AT_MEAN} over the printed one", row["source"], row["over"], "1"))
    for name in LENGTH_FILES:
        prompt, output = (mean_of_file(name, side) for side in ("prompt", "output"))
        known.append((FILE_MEANS, name, float(request_density(prompt, output, costs)), "1"))
    values = [row["density"] for row in densities if row["source"] != "LIMO"]
    known.append(("largest over smallest density", "six traces", max(values) / min(values), "1"))
    return {
        "lengths": pl.DataFrame(bins),
        "densities": pl.DataFrame(densities),
        "means": pl.DataFrame(at_means),
        "headline": headline(known),
    }


def _lengths(label: str, prompt: np.ndarray, output: np.ndarray) -> list[tuple[str, object, float, str]]:
    normalised = ", normalised" if label in ("WildChat", "OpenVid") else ", raw"
    if label != "ShareGPT":
        return [
            ("mean prompt tokens", label, prompt.mean(), "tokens"),
            (f"mean output tokens{normalised}", label, output.mean(), "tokens"),
        ]
    values = (prompt.mean(), prompt.std(), output.mean(), output.std())
    return [(name, label, value, "tokens") for name, value in zip(SAMPLE, values, strict=True)]
