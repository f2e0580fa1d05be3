"""How long a step takes, by every source that knows the pair of model and accelerator."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.spec import experiment
from workbench.errors import UserError
from workbench.latency import StepTime, step_time, step_time_sources
from workbench.profiles import Accelerator, Model, deployment

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
BOUND = "data-sheet peaks (bound)"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    decode = tables["decode"].filter((pl.col("batch") == parameters["batch"]) & (pl.col("source") != BOUND))
    prefill = tables["prefill"].filter((pl.col("tokens") == parameters["tokens"]) & (pl.col("source") != BOUND))

    def range_of(table: pl.DataFrame) -> str:
        low, high = table["seconds"].min() * 1e3, table["seconds"].max() * 1e3
        return f"{low:.3g} ms" if len(table) == 1 or f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g} ms"

    sources = ", ".join(decode["source"].unique(maintain_order=True))
    return (
        f"{name_of(parameters['model'])} on {name_of(parameters['accelerator'])}, TP {parameters['tp']}: a decode step "
        f"of {parameters['batch']} requests takes {range_of(decode)}, a prompt of {parameters['tokens']} tokens "
        f"{range_of(prefill)} (by {sources})."
    )


@experiment(
    "theory/step-time",
    title="How long does a step take?",
    question="What do a prefill and a decode step cost, what bounds them, and how far do the sources of numbers agree?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="latency.step_time",
    panels=("decode", "prefill"),
    say=_say,
)
def step_times(
    context: Context,
    *,
    model: Annotated[str, Par("Model", profile="model")] = "llama-3-8b",
    accelerator: Annotated[str, Par("Accelerator", profile="accelerator")] = "h100-80gb-sxm",
    tp: Annotated[int, Par("Tensor parallelism", low=1, high=8)] = 1,
    batch: Annotated[int, Par("Decode: requests marked", low=1, high=256)] = 32,
    context_tokens: Annotated[int, Par("Decode: context of a request", "tokens", low=1, high=131072, log=True)] = 1024,
    tokens: Annotated[int, Par("Prefill: tokens marked", low=16, high=8192, step=16)] = 1024,
) -> dict[str, pl.DataFrame]:
    """Seconds of a decode step against the batch, and of a prefill against its tokens.

    Sources that do not know the pair (fitted kernels, published coefficients, own calibrated profiles) are left out.
    """
    batches, sizes = sorted({*BATCHES, batch}), sorted({*TOKENS, tokens})
    decode, prefill = [], []
    found = _sources(context, context.model(model), context.accelerator(accelerator), tp)
    for name, step in found.items():
        for phase, rows, places, key in (("decode", decode, batches, "batch"), ("prefill", prefill, sizes, "tokens")):
            if phase not in step.phases:
                continue
            asked = np.array(places, dtype=float)
            given = step.decode(asked, asked * context_tokens) if phase == "decode" else step.prefill(asked)
            rows += _rows(name, key, places, given.seconds, given.outside)
            if name == "roofline":
                rows += _rows(BOUND, key, places, given.bound_s, np.zeros(len(places), dtype=bool))
    tables = {"decode": pl.DataFrame(decode), "prefill": pl.DataFrame(prefill)}
    known = curve_rows(
        tables["decode"].with_columns(pl.format("decode, {}", "source").alias("source")),
        "source", "batch", "seconds", "s",
    ) + curve_rows(
        tables["prefill"].with_columns(pl.format("prefill, {}", "source").alias("source")),
        "source", "tokens", "seconds", "s",
    )  # fmt: skip
    return {**tables, "headline": headline(known)}


def _rows(source: str, key: str, places: list[int], seconds: np.ndarray, outside: np.ndarray) -> list[dict[str, Any]]:
    return [
        {"source": source, key: place, "seconds": float(value), "outside_fitted_range": bool(out)}
        for place, value, out in zip(places, seconds, outside, strict=True)
    ]


def _sources(context: Context, model: Model, accelerator: Accelerator, tp: int) -> dict[str, StepTime]:
    """Every source that knows the pair; the roofline's refusal is everybody's."""
    found: dict[str, StepTime] = {}
    for name in step_time_sources()["source"]:
        try:
            found[name] = step_time(model, accelerator, deployment(tp=tp), source=name)
        except UserError:
            if name == "roofline":
                raise
            continue
        context.cite(f"step times by {name}", "formula", "", found[name].status, found[name].source)
        for source in found[name].sources():
            context.cite(f"{name}: {source.quantity}", source.value, source.unit, source.status, source.source)
    return found
