"""Figure 4: density against output length, for several prompt lengths."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.density import Density, request_density
from workbench.blending.model.questions import memory_bound_output
from workbench.catalogue.blendserve.jobs import costs_for
from workbench.catalogue.blendserve.parameters import On, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

PROMPTS = (128, 512, 2048, 8192)
MARKS = {"MMLU": (804, 2), "WildChat": (496, 256), "LIMO": (109, 7617), "OpenVid": (121, 16_000)}
OUTPUTS = np.geomspace(1, 100_000, 121)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    row = tables["crossings"].filter(pl.col("prompt_tokens") == parameters["prompt"]).row(0, named=True)
    return (
        f"A request of {row['prompt_tokens']:,} prompt tokens is compute-intensive up to {row['output_tokens']:,.0f} "
        "output tokens, beyond that memory-intensive."
    )


@experiment(
    "blendserve/fig4",
    title="When does a request turn memory-intensive?",
    question="At which output length does a request with a given prompt read memory for longer than it computes?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="blending_basics.density_by_output",
    say=_say,
)
def fig4(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    prompt: Annotated[
        int, Par("Prompt to mark", "tokens", low=1, high=16_384, step=1, log=True, free=True, source="chosen")
    ] = 496,
    attention: Annotated[
        bool, Par("Count prefill attention", source="ASPLOS'26 paper §4.1 drops it for prompts of a few hundred tokens")
    ] = False,
    weights: Annotated[
        bool,
        Par("Count weight reads", source="ASPLOS'26 paper §4.1 leaves them out; beside a full pool M they add W / M"),
    ] = False,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """ρ(p, d) by formula, where it crosses 1, and four sources at their mean lengths."""
    costs = costs_for(context, model, accelerator)
    about = Density(attention=attention, weights=weights)
    prompts = sorted({*PROMPTS, prompt})
    curves = [
        {"prompt_tokens": p, "output_tokens": float(d), "density": float(value)}
        for p in prompts
        for d, value in zip(OUTPUTS, request_density(p, OUTPUTS, costs, about), strict=True)
    ]
    crossings = [{"prompt_tokens": p, "output_tokens": float(memory_bound_output(p, costs, about))} for p in prompts]
    marks = [
        {"source": name, "prompt_tokens": p, "output_tokens": d, "density": float(request_density(p, d, costs, about))}
        for name, (p, d) in MARKS.items()
    ]
    series = "output tokens at a density of 1, x = prompt tokens"
    known = [(series, row["prompt_tokens"], row["output_tokens"], "tokens") for row in crossings]
    known += [("density", row["source"], row["density"], "1") for row in marks]
    return {
        "curves": pl.DataFrame(curves),
        "crossings": pl.DataFrame(crossings),
        "marks": pl.DataFrame(marks),
        "headline": headline(known),
    }
