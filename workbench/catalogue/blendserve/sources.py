"""Lengths and densities of the sources, drawn from their length models, and at the printed means."""

import functools
from typing import Any, NamedTuple

import numpy as np

from workbench.blending.model.costs import Costs
from workbench.blending.model.density import request_density, total_density
from workbench.blending.model.sources import length_models, source_named
from workbench.catalogue.blendserve.jobs import random_of
from workbench.catalogue.published import published

PRINTED = {
    # label: mean prompt and output tokens at which a density is computed, sharing ratio taken off
    "MMLU": (804, 2, 0.8646),
    "Azure-Trace": (2508, 23, 0.01),
    "BurstGPT": (244, 27, 0.02),
    "ShareGPT": (246, 322, 0.02),
    "WildChat, raw, 510 output tokens": (496, 510, 0.19),
    "WildChat, normalised, 256 output tokens": (496, 256, 0.19),
    "LIMO": (109, 7617, 0.0),
    "OpenVid, raw, 43.7K output tokens": (121, 43_726, 0.0),
    "OpenVid, normalised, 16K output tokens": (121, 16_000, 0.0),
}
"""Means printed in Fig 2 and appendix A.3, for ShareGPT those of NanoFlow's sample; sharing ratios of Table 4."""
DENSITIES = {"MMLU": 54.91, "Azure-Trace": 33.2, "BurstGPT": 17.78, "ShareGPT": 3.12, "WildChat": 2.13, "LIMO": 0.14,
             "OpenVid": 0.05}  # fmt: skip
"""Densities printed in Fig 2 and Table 4."""
LENGTH_FILES = ("sharegpt.csv", "lmsys.csv", "splitwise.csv")
"""Of NanoFlow, whose mean lengths are published and which are not held here."""
AT_MEANS = ("MMLU", "Azure-Trace")
"""Sources whose printed density is that of their printed means."""


def mean_of_file(name: str, side: str) -> float:
    """The published mean tokens of the prompts, or of the outputs, of one of NanoFlow's length files."""
    points = published("blendserve/fig2").filter(series=f"mean {side} tokens, NanoFlow length file", x=name)
    return float(points["value"].item())


class Draws(NamedTuple):
    """Requests drawn from one source: prompt and output tokens, sharing ratio, density of all of them."""

    prompt: np.ndarray
    output: np.ndarray
    sharing: float
    density: float


@functools.lru_cache(maxsize=16)
def draws(name: str, requests: int, costs: Costs, seed: int) -> Draws:
    """Requests of one source, and what they weigh together."""
    source = source_named(name)
    drawn = source.draw(requests, random_of(seed, f"lengths of {name}"))
    prompt = drawn.own + source.shared
    groups = np.unique(drawn.group).size
    shared = (requests - groups) * source.shared / float(prompt.sum() + drawn.output.sum())
    return Draws(prompt, drawn.output, shared, total_density(prompt, drawn.output, costs, shared))


def labels() -> dict[str, str]:
    """Label -> name of every length model."""
    return {model.label: name for name, model in length_models().items()}


def at_the_means(costs: Costs) -> list[dict[str, Any]]:
    """Density at each printed mean, and that over the printed density."""
    rows = []
    for label, (prompt, output, shared) in PRINTED.items():
        density = float((1 - shared) * request_density(prompt, output, costs))
        over = density / DENSITIES[label.split(",")[0]]
        rows.append(
            {"source": label, "prompt_tokens": prompt, "output_tokens": output, "density": density, "over": over}
        )
    return rows
