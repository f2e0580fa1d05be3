"""How many GPUs a pool of many models needs: a calculator for own rates, times and sizes, also from a trace."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.errors import UserError
from workbench.queueing import Customers, Exponential, active_models, active_path, draw_customers
from workbench.workloads import trace as read_trace

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
LONGEST_PATH_S = 20_000.0
MOST_REQUESTS = 2_000_000


class Demand(NamedTuple):
    """What the models are asked.

    Attributes:
        rates_per_s, active_s: of each model: requests per second, and mean time one keeps its model busy.
        requests: arrivals and times of a path; None where none was given.
        owner: whose request each is.
        words: where the requests come from, for legends.
    """

    rates_per_s: np.ndarray
    active_s: np.ndarray
    requests: Customers | None
    owner: np.ndarray | None
    words: str


def _ends(counts: pl.Series) -> str:
    """The count, or from which to which where runs differ."""
    least, most = counts.min(), counts.max()
    return f"{least}" if least == most else f"{least} to {most}"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["needed"].filter(pl.col("share") == parameters["time_share"])
    parts = []
    for (by, share), runs in table.group_by("by", "share", maintain_order=True):
        parts.append(f"{_ends(runs['active'])} at once {by} in {share:.4g} of the time, so {_ends(runs['gpus'])} GPUs")
    fit = tables["needed"]["models_a_gpu"][0]
    return (
        f"{tables['needed']['models'][0]} models, {fit} of which fit a GPU: at most {'; '.join(parts)}; a GPU each for "
        f"all would take {tables['needed']['dedicated'][0]}."
    )


@experiment(
    "theory/pool-size",
    title="How large must the pool be?",
    question="How many GPUs do my models need when only the active ones hold one, and what do bursts add?",
    backends=("analytic", "compiled"),
    seconds={"analytic": 0.02, "compiled": 0.1},
    draw="waiting.pool",
    panels=("shares", "gpus"),
    say=_say,
    stochastic=True,
)
def pool_size(
    context: Context,
    *,
    trace: Annotated[
        str, Par("Trace (a name or a file; empty for Poisson requests)", trace=True, source="own requests, if any")
    ] = "",
    models: Annotated[int, Par("Models", low=1, high=1000, source="100 in Aegaeon §3.1")] = 100,
    rate_per_s: Annotated[
        float, Par("Requests of all models", "1/s", low=0.01, high=1000, log=True, source="100 x 0.037 in Aegaeon §3.1")
    ] = 3.7,
    active_s: Annotated[
        float, Par("Time a request takes", "s", low=0.1, high=300, log=True, source="16.79 s in Aegaeon §3.1")
    ] = 16.79,
    popularity: Annotated[
        float, Par("Popularity: Zipf exponent", low=0, high=2, step=0.05, source="0: all alike")
    ] = 0.0,
    seconds_per_output_token: Annotated[
        float,
        Par("Trace: seconds per output token", "s", low=0.001, high=1, log=True, source="40 tokens a second"),
    ] = 0.025,
    seconds_per_prompt_token: Annotated[
        float,
        Par("Trace: seconds per prompt token", "s", low=1e-6, high=0.01, log=True, source="10,000 tokens a second"),
    ] = 1e-4,
    model: Annotated[str, Par("Each is as large as", profile="model")] = "qwen-7b",
    accelerator: Annotated[str, Par("GPU", profile="accelerator")] = "h800-80gb-sxm",
    weight_share: Annotated[
        float, Par("Share of a GPU's memory for weights", low=0.05, high=1, step=0.05, source="the rest holds KV cache")
    ] = 0.5,
    time_share: Annotated[float, Par("Enough for this share of the time", low=0.5, high=0.999, step=0.001)] = 0.99,
) -> dict[str, pl.DataFrame]:
    """Share of time with k models active, and GPUs needed so that all active models hold one in a share of the time.

    The formula takes Poisson requests that never wait (M/G/∞ a model); a path counts what really was active. Requests
    of a trace that names one model only are dealt to `models` models at random, by popularity. A model that is larger
    than the memory set aside takes several GPUs; where several fit a GPU, active ones share it.
    """
    profile, gpu = context.model(model), context.accelerator(accelerator)
    memory = context.cite(f"{gpu.name} memory", gpu.memory_bytes) * weight_share
    fit, gpus_a_model = int(memory // profile.weight_bytes), int(-(-profile.weight_bytes // memory))
    demand = _demand(context, trace, models, rate_per_s, active_s, popularity, seconds_per_output_token,
                     seconds_per_prompt_token)  # fmt: skip
    count = len(demand.rates_per_s)
    if context.backend == "analytic":
        found = active_models(demand.rates_per_s, demand.active_s, count)
        shares, by = found.count_probability, "by formula (Poisson requests)"
    else:
        shares, by = _path(context, demand), demand.words
    cumulative = np.cumsum(shares)
    needed = []
    for share in sorted({*SHARES, time_share}):
        active = int(np.searchsorted(cumulative, share * (1 - 1e-12)))
        gpus = -(-active // fit) if fit else active * gpus_a_model
        needed.append({"share": share, "active": active, "gpus": gpus, "by": by, "models": count})
    table = pl.DataFrame(needed).with_columns(
        models_a_gpu=pl.lit(fit), dedicated=pl.lit(count * max(gpus_a_model, 1)), mean_active=pl.lit(_mean(shares))
    )
    known = [("active models at most", f"{row['share']:g} of the time", row["active"], "1") for row in needed]
    known += [("GPUs needed", f"{row['share']:g} of the time", row["gpus"], "1") for row in needed]
    known.append(("mean active models", "", _mean(shares), "1"))
    distribution = pl.DataFrame({"active": np.arange(len(shares)), "time_share": shares, "not_more": cumulative})
    return {"shares": distribution, "needed": table, "headline": headline(known)}


def _mean(shares: np.ndarray) -> float:
    return float(shares @ np.arange(len(shares)))


def _weights(models: int, popularity: float) -> np.ndarray:
    weights = np.arange(1.0, models + 1) ** -popularity
    return weights / weights.sum()


def _demand(
    context: Context,
    trace: str,
    models: int,
    rate_per_s: float,
    active_s: float,
    popularity: float,
    per_output_s: float,
    per_prompt_s: float,
) -> Demand:
    if not trace:
        weights = _weights(models, popularity)
        return Demand(rate_per_s * weights, np.full(models, active_s), None, None, "on a Poisson path")
    asked = read_trace(trace)
    table = asked.requests
    status = "computed" if asked.origin.stand_in else "measured"
    context.cite(f"trace {asked.origin.name}", len(table), "requests", status, asked.origin.source or "own file")
    arrival = table["arrival_s"].to_numpy()
    service = table["prompt_tokens"].to_numpy() * per_prompt_s + table["output_tokens"].to_numpy() * per_output_s
    span = float(arrival[-1] - arrival[0]) if len(arrival) else 0.0
    if span <= 0:
        raise UserError(f"Trace {asked.origin.name} spans no time, so it has no rates; give one with several instants.")
    names, owner = np.unique(table["model"].to_numpy(), return_inverse=True)
    if len(names) == 1:
        owner = context.random("model").choice(models, size=len(arrival), p=_weights(models, popularity))
        context.cite("requests of the trace", "dealt to models at random", "", "chosen", "it names one model only")
    count = len(names) if len(names) > 1 else models
    asks = np.bincount(owner, minlength=count)
    total = np.bincount(owner, service, minlength=count)
    mean = np.where(asks > 0, total / np.maximum(asks, 1), service.mean())
    return Demand(asks / span, np.maximum(mean, 1e-9), Customers(arrival, service), owner, f"in {asked.origin.name}")


def _path(context: Context, demand: Demand) -> np.ndarray:
    """Share of the time with 0, 1, 2, … models active."""
    longest = float(demand.active_s.max())
    if demand.requests is not None:
        arrival = demand.requests.arrival_s
        return active_path(demand.requests, demand.owner).shares(float(arrival[0]), float(arrival[-1]))
    total = float(demand.rates_per_s.sum())
    before, until = 10 * longest, min(LONGEST_PATH_S, MOST_REQUESTS / total)
    count = int(total * (before + until) * 1.02) + 100
    context.tell(f"{count:,} requests")
    rng = context.random("model")
    owner = rng.choice(len(demand.rates_per_s), size=count, p=demand.rates_per_s / total)
    drawn = draw_customers(Exponential(mean_s=1 / total), Exponential(mean_s=longest), count, context.seed)
    return active_path(drawn, owner).shares(before, min(before + until, float(drawn.arrival_s[-1])))
