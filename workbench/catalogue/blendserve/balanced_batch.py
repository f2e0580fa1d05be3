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
        f"Requests of density {parameters['density']:g} keep the pool full with {row['tokens']:,.0f} tokens a step; "
        f"a step of {parameters['batch']:,} tokens that reads it leaves compute idle for {row['idle_compute']:.0%} and "
        f"memory for {row['idle_memory']:.0%} of its time if both overlap perfectly."
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
    """ρ (M / bandwidth) (compute / 2 P) tokens a step; and what a step that reads the full pool leaves idle.

    Requests of a density ρ keep the pool full only if so many tokens are computed a step on average: with fewer it runs
    empty, with more it cannot admit what it would need. How long compute or memory then waits is that of a single step.
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
