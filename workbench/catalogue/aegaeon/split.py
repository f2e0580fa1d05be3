"""Beyond the paper: which models to pool, and which to give GPUs of their own."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.pools import promise, steps_on
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.catalogue.tracing import replayed
from workbench.errors import UserError
from workbench.pooling import PoolModel, market_models, pooled, pooling_on
from workbench.pooling.model.market import market_lengths
from workbench.workloads import market, zipf_rates

MOST_GPUS = 128
CUTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
QUICK = (0.0, 0.05, 0.2, 1.0)


class Asked(NamedTuple):
    """Requests, their models by number in descending order of rate, and what each model is.

    Attributes:
        table: the requests. owner: of each, the number of its model. models: in that order.
    """

    table: pl.DataFrame
    owner: np.ndarray
    models: list[PoolModel]


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["cuts"].sort("gpus")
    if not (best := table.filter(pl.col("met")).head(1).to_dicts()):
        return f"No cut keeps {parameters['attainment']:.0%} with {MOST_GPUS} GPUs in the pool."
    row, count = best[0], table["models"][0]
    return (
        f"Fewest GPUs, {row['gpus']}, are needed when the {row['dedicated']} busiest of {count} models have their own "
        f"and {row['pooled']} share {row['pool_gpus']}; a GPU each for all would take {count}."
    )


@experiment(
    "aegaeon/split",
    title="Which models should share?",
    question="Models sorted by how often they are asked: up to which one is a GPU of its own better than the pool, at "
    "equal attainment?",
    backends=("compiled",),
    seconds={"compiled": 4.0},
    draw="pooling_beyond.cut",
    say=_say,
    stochastic=True,
)
def split(
    context: Context,
    *,
    trace: Annotated[
        str, Par("Trace (a name or a file; empty for a market)", trace=True, free=True, source="own requests, if any")
    ] = "",
    cluster: pools.Hardware = "aegaeon-h800",
    models: Annotated[int, Par("Models", low=2, high=200, free=True, source="chosen")] = 60,
    rate_per_s: Annotated[
        float, Par("Requests of all models", "1/s", low=0.1, high=60, log=True, free=True, source="chosen")
    ] = 6.0,
    popularity: Annotated[
        float, Par("Popularity: Zipf exponent", low=0, high=2, step=0.05, free=True, source="chosen: a long tail")
    ] = 1.2,
    longest_s: Annotated[
        float, Par("Busiest seconds of a trace", "s", low=30, high=600, step=30, free=True, source="chosen")
    ] = 120.0,
    attainment: Annotated[
        float, Par("Attainment to be kept", low=0.5, high=0.99, step=0.01, free=True, source="90 % in §7.2")
    ] = 0.9,
) -> dict[str, pl.DataFrame]:
    """GPUs by cut: as many of the busiest models have a GPU each, the others share the smallest pool that is enough.

    Requests of a trace that names one model only are dealt to `models` models at random, by popularity. In the pool
    three of eight GPUs process prompts. A model that a GPU of its own cannot serve well enough gets no second one here.
    """
    asked = _asked(context, trace, models, rate_per_s, popularity, longest_s, cluster)
    count = len(asked.models)
    rows = []
    for cut in sorted({round(share * count) for share in (QUICK if context.mode == "quick" else CUTS)}):
        context.tell(f"{cut} models with GPUs of their own")
        own = _dedicated(context, asked, cut, cluster)
        gpus, kept = _smallest(context, asked, cut, cluster, attainment)
        asked_of = (int((asked.owner < cut).sum()), int((asked.owner >= cut).sum()))
        whole = (own * asked_of[0] + kept * asked_of[1]) / max(1, sum(asked_of))
        rows.append(
            {"dedicated": cut, "pooled": count - cut, "pool_gpus": gpus, "gpus": cut + gpus, "models": count,
             "own_kept": own, "pool_kept": kept, "kept": whole, "met": kept >= attainment or cut == count}
        )  # fmt: skip
    known = [("GPUs in all, x = models with a GPU of their own", row["dedicated"], row["gpus"], "1") for row in rows]
    return {"cuts": pl.DataFrame(rows), "headline": headline(known)}


def _asked(
    context: Context, trace: str, models: int, rate_per_s: float, popularity: float, longest_s: float, cluster: str
) -> Asked:
    if trace:
        table = replayed(context, trace, longest_s=longest_s).requests
        if table["model"].n_unique() == 1:
            weights = np.arange(1.0, models + 1) ** -popularity
            dealt = context.random("deal").choice(models, len(table), p=weights / weights.sum())
            table = table.with_columns(model=pl.Series([f"model-{k + 1:03d}" for k in dealt]))
    else:
        rates = zipf_rates(models, rate_per_s, popularity)
        table = market(rates, market_lengths(), duration_s=longest_s, seed=context.seed).requests
    names = table["model"].value_counts().sort("count", "model", descending=[True, False])["model"].to_list()
    if len(names) < 2:
        raise UserError("aegaeon/split: fewer than two models are asked for; raise the rate, or give more models.")
    number = {name: k for k, name in enumerate(names)}
    accelerator = context.cluster(cluster).accelerator
    made = list(market_models(len(names), accelerator, steps=steps_on(accelerator)).values())
    for model in {model.name: model for model in made}.values():
        context.cite(f"{model.name}, decode step of one", model.decode[0], "s", "fitted", model.source)
    return Asked(table.sort("arrival_s"), np.array([number[name] for name in table.sort("arrival_s")["model"]]), made)


def _part(asked: Asked, chosen: np.ndarray) -> tuple[dict[str, PoolModel], pl.DataFrame]:
    names = [f"m{k:03d}" for k in range(len(asked.models))]
    table = asked.table.with_columns(model=pl.Series([names[k] for k in asked.owner])).filter(pl.Series(chosen))
    kept = sorted(set(asked.owner[chosen].tolist()))
    return {names[k]: asked.models[k] for k in kept}, table


def _dedicated(context: Context, asked: Asked, cut: int, cluster: str) -> float:
    chosen = asked.owner < cut
    if not chosen.any():
        return 1.0
    models, table = _part(asked, chosen)
    pooling = pooling_on(context.cluster(cluster), system="dedicated")
    return pooled(pooling, models, table).attainment(promise())["qos-artifact"]


def _smallest(context: Context, asked: Asked, cut: int, cluster: str, target: float) -> tuple[int, float]:
    """GPUs of the smallest pool that keeps the target for the models from `cut` on, and what it keeps."""
    chosen = asked.owner >= cut
    if not chosen.any():
        return 0, 1.0
    models, table = _part(asked, chosen)

    def kept(gpus: int) -> float:
        context.check()
        prefill = max(1, round(gpus * 3 / 8))
        pooling = pooling_on(context.cluster(cluster), prefill=prefill, decode=gpus - prefill, nodes=1)
        return pooled(pooling, models, table).attainment(promise())["qos-artifact"]

    high = 2
    while (found := kept(high)) < target and high < MOST_GPUS:
        high *= 2
    low, best = high // 2, found
    while high - low > 1:
        middle = (low + high) // 2
        value = kept(middle) if middle >= 2 else 0.0
        low, high, best = (low, middle, value) if value >= target else (middle, high, best)
    return high, best
