"""How large a balanced dense batch is, and what a fixed batch leaves idle."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.questions import balanced_tokens
from workbench.catalogue.blendserve.jobs import costs_for
from workbench.catalogue.blendserve.parameters import On, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

CHIPS = ("a100-80gb-sxm", "h100-80gb-sxm", "h200-141gb-sxm", "l40s-48gb")
DENSITIES = np.linspace(0.2, 3.0, 57)
BATCHES = np.arange(128, 4096 + 1, 64)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    row = tables["chosen"].row(0, named=True)
    return (
        f"At a density of {parameters['density']:g} a step that reads the full pool is balanced with "
        f"{row['tokens']:,.0f} tokens; a fixed batch of {parameters['batch']:,} leaves compute idle for "
        f"{row['idle_compute']:.0%} of a step with perfect overlap and memory for {row['idle_memory']:.0%}."
    )


@experiment(
    "blendserve/balanced-batch",
    title="How large is a balanced batch?",
    question="Why is the balanced dense batch of Llama-3-8B on an A100 800 tokens and not 2048?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="blending_basics.batches",
    panels=("batch", "idle"),
    say=_say,
)
def balanced_batch(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    density: Annotated[
        float, Par("Density of the requests", low=0.2, high=3.0, step=0.05, free=True, source="Trace#1 of Table 2")
    ] = 1.4,
    batch: Annotated[
        int, Par("Fixed dense batch", "tokens", low=128, high=4096, step=128, free=True, source="NanoFlow ships 1024")
    ] = 1024,
) -> dict[str, pl.DataFrame]:
    """ρ (M / bandwidth) (compute / 2 P) tokens a step, and the idle shares of a step with another batch.

    Requests are admitted as they finish, so with a larger batch the pool is not full: T_m shrinks in proportion to what
    is left of the memory work for each token.
    """
    chips = dict.fromkeys((context.accelerator(accelerator).name, *CHIPS))
    lines = [
        {"accelerator": name, "density": float(rho), "tokens": float(tokens)}
        for name in chips
        for rho, tokens in zip(
            DENSITIES, balanced_tokens(DENSITIES, costs_for(context, model, _chip(name, accelerator))), strict=True
        )
    ]
    costs = costs_for(context, model, accelerator)
    full_s = costs.pool_bytes / costs.memory_bytes_per_s
    idle = [{"batch": int(size), **_idle(float(size), costs.token_s, full_s)} for size in sorted({*BATCHES, batch})]
    tokens = float(balanced_tokens(density, costs))
    chosen = {"density": density, "tokens": tokens, **_idle(float(batch), costs.token_s, full_s)}
    series = f"balanced dense batch, {context.accelerator(accelerator).name}, x = density"
    known = [(series, rho, float(balanced_tokens(rho, costs)), "tokens") for rho in (0.9, 1.4)]
    return {"lines": pl.DataFrame(lines), "idle": pl.DataFrame(idle), "chosen": pl.DataFrame([chosen]),
            "headline": headline(known)}  # fmt: skip


def _chip(name: str, chosen):
    """The accelerator of a line: the chosen one may be made in code and then has no name to be found by."""
    return chosen if getattr(chosen, "name", chosen) == name else name


def _idle(tokens: float, token_s: float, full_s: float) -> dict[str, float]:
    """Idle shares of a step with so many tokens that reads the full pool, compute and memory overlapping perfectly."""
    compute_s = tokens * token_s
    step_s = max(compute_s, full_s)
    return {"idle_compute": 1 - compute_s / step_s, "idle_memory": 1 - full_s / step_s}
