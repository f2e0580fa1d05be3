"""Figure 2: how long a model stays in a host's LRU cache, and which reading of the set-up gives the published share."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.caching.model import LruCache, lru_evictions
from workbench.caching.simulated import simulate_lru
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, experiment

_PAPER = "MLSys'26 paper §2.3"
STAY, IDLE = "from load to eviction", "from last use to eviction"
SERIES = "share of models that stay in RAM shorter than x"
MEAN = "mean time in the cache"
LIMIT_S = 15.0
READINGS = (
    ("as stated", 3, 60.0, STAY),
    ("as stated, idle time", 3, 60.0, IDLE),
    ("capacity 1, idle time", 1, 60.0, IDLE),
    ("three times the requests", 3, 20.0, STAY),
)
"""What the text could mean: name, models held, seconds between requests of a model, what is measured."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["limit"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("measure") == parameters["measure"]))
    return (
        f"Of {parameters['models']} models the cache holds {parameters['capacity']}; {table['share'][0]:.1%} of times "
        f"{parameters['measure']} are below 15 s, and the mean is {table['mean_s'][0]:.3g} s."
    )


@experiment(
    "lambdascale/fig2",
    title="How long does a model stay in host memory?",
    question="A host holds 3 of 12 models, least recently used out first: which share of them stays less than 15 s?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.02, "compiled": 0.05, "simpy": 2},
    draw="keeping.residency",
    panels=("times", "readings"),
    say=_say,
    stochastic=True,
    matches=(
        Match(
            (SERIES,),
            assumptions=(
                Assumption("each model is asked for once a minute", {"gap_s": 20.0}),
                Assumption("three models fit, and their time counts from the load", {"capacity": 1, "measure": IDLE}),
            ),
        ),
        Match(tolerance=0.02),
    ),
    agrees=(
        Agree(
            "share below 15 s (chance error of the path)", "limit", ("measure",), "share",
            {("analytic", "compiled"): (-0.05, 0.05)},
        ),
        Agree("share below 15 s on the same path", "limit", ("measure",), "share",
              {("compiled", "simpy"): (-1e-9, 1e-9)}),
    ),
)  # fmt: skip
def fig2(
    context: Context,
    *,
    models: Annotated[int, Par("Models", low=9, high=100, status="published", source=f"{_PAPER}: 12 on SSD")] = 12,
    capacity: Annotated[
        int, Par("Models in host memory", low=1, high=8, status="published", source=f"{_PAPER}: 3")
    ] = 3,
    gap_s: Annotated[
        float,
        Par(
            "Time between requests of a model",
            "s",
            low=1,
            high=600,
            log=True,
            status="published",
            source=f"{_PAPER}: one a minute and model; that they are Poisson is ours",
        ),
    ] = 60.0,
    measure: Annotated[
        str, Par("What is measured", choices=(STAY, IDLE), source="the paper says keep-alive time and not from when")
    ] = STAY,
    requests: Annotated[
        int, Par("Requests of a path", low=20_000, high=200_000, step=1000, free=True, source="chance error about 1 %")
    ] = 50_000,
) -> dict[str, pl.DataFrame]:
    """Shares of evictions by age: exact for Poisson requests, and counted on a path.

    The formula is a Markov chain on the places of the LRU list; see `workbench.caching.model.LruCache.gone`.
    """
    cache = LruCache(models=models, capacity=capacity, rate_per_s=1 / gap_s)
    times = np.unique([*np.linspace(0, 4 * cache.mean_stay_s, 81), LIMIT_S])
    known: list[tuple[str, object, float, str]] = []
    tables = {}
    if context.backend == "analytic":
        columns, means = cache.gone(times), (cache.mean_stay_s, cache.mean_idle_s)
        readings, known = _readings(models, times)
        tables["readings"] = readings
    else:
        rng = context.random("requests")
        count = min(requests, 20_000) if context.mode == "quick" else requests
        context.tell(f"{count:,} requests")
        arrival = np.cumsum(rng.exponential(gap_s / models, count))
        found = (lru_evictions if context.backend == "compiled" else simulate_lru)(
            arrival, rng.integers(models, size=count), capacity
        )
        columns = tuple(np.searchsorted(np.sort(ages), times, "right") / max(len(ages), 1) for ages in found)
        means = tuple(float(ages.mean()) for ages in found)
    at = int(np.searchsorted(times, LIMIT_S))
    names = (STAY, IDLE)
    curves = [
        pl.DataFrame({"time_s": times, "share": column}).with_columns(measure=pl.lit(name))
        for name, column in zip(names, columns, strict=True)
    ]
    limit = [
        {"measure": name, "share": float(column[at]), "mean_s": mean}
        for name, column, mean in zip(names, columns, means, strict=True)
    ]
    chosen = limit[names.index(measure)]
    known = [(SERIES, "15 s", chosen["share"], "1"), (MEAN, "", limit[0]["mean_s"], "s"), *known]
    return {"curves": pl.concat(curves), "limit": pl.DataFrame(limit), **tables, "headline": headline(known)}


def _readings(models: int, times: np.ndarray) -> tuple[pl.DataFrame, list[tuple[str, object, float, str]]]:
    """What each reading of the set-up gives, and the shares below 15 s."""
    frames, known = [], []
    for name, capacity, gap_s, measure in READINGS:
        cache = LruCache(models=models, capacity=capacity, rate_per_s=1 / gap_s)
        stay, idle = cache.gone(times)
        shares = stay if measure == STAY else idle
        frames.append(pl.DataFrame({"time_s": times, "share": shares}).with_columns(reading=pl.lit(name)))
        kind = "residencies below 15 s" if measure == STAY else "models idle below 15 s until evicted"
        rate = round(60 / gap_s)
        x = f"capacity {capacity}, {rate} request{'s' if rate > 1 else ''}/min per model"
        known.append((f"own check: share of {kind}", x, float(shares[np.searchsorted(times, LIMIT_S)]), "1"))
    return pl.concat(frames), known
