"""Figure 1: the long tail of a model market, and bursts above what a hot model has reserved."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Match, experiment
from workbench.workloads import MarkovModulated

_PAPER = "SOSP'25 paper Fig 1a"
TAIL = "panel a: share of requests that go to the tail"
INPUTS = (
    "panel a: share of models in the tail", "panel a: models", "panel a: requests", "panel a: GPUs",
    "panel a: share of GPUs that the tail holds",
)  # fmt: skip
SHAPES = ("log-normal", "Zipf")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    parts = []
    if "shares" in tables:
        rows = tables["shares"].unique("shape", maintain_order=True).to_dicts()
        fitted = " and ".join(f"a {row['shape']} popularity with {row['parameter']:.3g}" for row in rows)
        parts.append(f"{fitted} give {parameters['tail_models']:.1%} of the models {parameters['tail_requests']:.2%} "
                     "of the requests")  # fmt: skip
    if "bursts" in tables:
        table = tables["bursts"]
        over = float((table["rate_per_s"] > table["reserved_per_s"]).mean())
        parts.append(f"a hot model's requests exceed the reserved rate in {over:.0%} of the time")
    return "; ".join(parts)[0].upper() + "; ".join(parts)[1:] + "."


@experiment(
    "aegaeon/fig1",
    title="How long is the tail of a model market?",
    question="How unequal must popularity be for 94.1 % of the models to get 1.35 % of the requests, and how do bursts "
    "of a hot model compare with what it reserved?",
    backends=("analytic", "compiled"),
    seconds={"analytic": 0.05, "compiled": 0.05},
    draw="pooling_formulas.tail",
    panels=("shares", "bursts"),
    say=_say,
    stochastic=True,
    matches=(
        Match((*INPUTS, TAIL), fitted=ALL),
        Match(("panel a: mean rate of a tail model",),
              incomparable={"": "neither its unit nor the time over which requests were counted is stated"}),
        Match(("panel b: GPUs of the cluster of a hot 270B model, TP=8",),
              incomparable={"": "it describes the cluster that panel b was recorded on; no result of a model"}),
    ),
)  # fmt: skip
def fig1(
    context: Context,
    *,
    models: Annotated[int, Par("Models", low=10, high=5000, status="published", source=f"{_PAPER}: 779")] = 779,
    tail_models: Annotated[
        float, Par("Share of models in the tail", low=0.5, high=0.99, step=0.001, status="published", source=_PAPER)
    ] = 0.941,
    tail_requests: Annotated[
        float, Par("Their share of requests", low=0.001, high=0.4, step=0.0005, status="published", source=_PAPER)
    ] = 0.0135,
    burst_factor: Annotated[
        float,
        Par("Bursts over the usual rate", low=1, high=10, step=0.5, free=True, source="chosen: none is published"),
    ] = 3.0,
    reserve_factor: Annotated[
        float, Par("Reserved over the mean rate", low=1, high=5, step=0.1, free=True, source="chosen")
    ] = 1.5,
) -> dict[str, pl.DataFrame]:
    """Cumulative share of requests by share of models for two popularities through the published point; a path of a
    hot model's rate, with bursts, beside a reserved line."""
    if context.backend == "compiled":
        return {"bursts": _bursts(context, burst_factor, reserve_factor), "headline": headline([])}
    rows = []
    for shape in SHAPES:
        weights, parameter = _popularity(shape, models, tail_models, tail_requests)
        share = np.cumsum(weights)
        for k in sorted({*np.unique(np.geomspace(1, models, 120).astype(int)).tolist()}):
            rows.append(
                {"shape": shape, "parameter": parameter, "top_share": k / models, "request_share": share[k - 1]}
            )
    table = pl.DataFrame(rows)
    got = {
        shape: _tail_of(*_popularity(shape, models, tail_models, tail_requests)[:1], tail_models) for shape in SHAPES
    }
    gpus = context.cite("GPUs of the market", 30_000, "1", "published", _PAPER)
    held = context.cite("share of GPUs that the tail holds", 0.177, "1", "published", _PAPER)
    requests = context.cite("requests in the window", 167_600_000, "1", "published", _PAPER)
    known = [
        (TAIL, "tail of 94.1 % of the models", got["log-normal"], "1"),
        ("panel a: share of models in the tail", "779 models", tail_models, "1"),
        ("panel a: models", "", models, "1"),
        ("panel a: requests", "", requests, "1"),
        ("panel a: GPUs", "", gpus, "1"),
        ("panel a: share of GPUs that the tail holds", "tail of 94.1 % of the models", held, "1"),
        ("panel a: GPUs that the tail holds", "", held * gpus, "1"),
        ("panel a: requests per GPU of the tail in the window", "", tail_requests * requests / (held * gpus), "1"),
    ]
    return {"shares": table, "headline": headline(known)}


def _popularity(shape: str, models: int, tail_models: float, tail_requests: float) -> tuple[np.ndarray, float]:
    """Shares of requests, the most popular first, and the parameter that puts the tail's share where it is wanted."""
    low, high = 0.0, 12.0
    for _ in range(80):
        middle = (low + high) / 2
        weights = _weights(shape, models, middle)
        low, high = (middle, high) if _tail_of(weights, tail_models) > tail_requests else (low, middle)
    return _weights(shape, models, high), high


def _weights(shape: str, models: int, parameter: float) -> np.ndarray:
    if shape == "Zipf":
        logs = -parameter * np.log(np.arange(1, models + 1))
    else:
        logs = parameter * ndtri(1 - (np.arange(models) + 0.5) / models)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def _tail_of(weights: np.ndarray, tail_models: float) -> float:
    return float(weights[round(weights.size * (1 - tail_models)) :].sum())


def _bursts(context: Context, burst_factor: float, reserve_factor: float) -> pl.DataFrame:
    """Requests a second, minute by minute, of a Poisson process whose rate jumps up in bursts."""
    usual, span_s, burst_share = 10.0, 6 * 3600.0, 0.1
    mean = usual * (1 - burst_share + burst_share * burst_factor)
    stays_s = (1800.0, 1800.0 * burst_share / (1 - burst_share))
    process = MarkovModulated(rates_per_s=(usual, burst_factor * usual), stays_s=stays_s)
    times = process.times(span_s, context.random("bursts"))
    counts = np.histogram(times, np.arange(0.0, span_s + 1, 60.0))[0]
    hours = np.arange(counts.size) / 60.0
    return pl.DataFrame({"hour": hours, "rate_per_s": counts / 60.0}).with_columns(
        reserved_per_s=pl.lit(reserve_factor * mean), mean_per_s=pl.lit(mean)
    )
