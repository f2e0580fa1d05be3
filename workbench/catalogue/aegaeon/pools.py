"""Pools under the synthetic market: what the experiments on attainment share."""

import functools
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.errors import UserError
from workbench.latency import step_time
from workbench.pooling import PoolModel, PoolRun, market_models, market_trace, pooled, pooling_on
from workbench.pooling.model.facts import facts
from workbench.pooling.simulated import simulate
from workbench.profiles import SLO, Accelerator
from workbench.profiles import slo as make_slo

PAPER = "SOSP'25 paper"
AEGAEON, SLLM, PLUS, MUX = "Aegaeon", "ServerlessLLM", "ServerlessLLM+", "MuxServe"
SYSTEMS = {AEGAEON: "aegaeon", SLLM: "serverlessllm@aegaeon", PLUS: "serverlessllm-plus", MUX: "muxserve"}
METRICS = ("qos-artifact", "qos-reset", "token", "request")
VARIANTS = ("paper", "artifact", "simulator")
RUNS = 5
"""Seeds of a full run of Figures 11 to 13, over which bands are drawn."""

GOOD = 0.9
"""Attainment from which on a load counts as served."""

Hardware = Annotated[
    str, Par("Cluster", profile="cluster", status="published", source=f"{PAPER} §7.1: two hosts of eight H800")
]
Way = Annotated[
    str,
    Par("Run as in the", choices=VARIANTS, status="published", source=f"{PAPER} Algorithms 1 and 2, A.2"),
]
Metric = Annotated[
    str,
    Par("Attainment", choices=METRICS, status="published", source="artifact plots/plot_e2e.py: a share of time"),
]
Arrivals = Annotated[
    str,
    Par("Arrivals", choices=("artifact", "poisson"), status="published", source="artifact aegaeon/workload.py"),
]
BaselineRate = Annotated[
    float,
    Par(
        "Both ServerlessLLM load weights at",
        "bytes/s",
        low=4e9,
        high=64e9,
        log=True,
        status="published",
        source="artifact aegaeon/sim, where its README says both curves come from: 16 GB/s",
    ),
]
Prefill = Annotated[
    int, Par("Prefill instances of 16", low=2, high=14, step=2, status="published", source=f"{PAPER} §7.2: 6")
]
Quota = Annotated[
    float,
    Par("Longest quota", "s", low=0.25, high=16, log=True, status="published", source=f"{PAPER} §4.3: 4 s"),
]


def steps_on(accelerator: Accelerator) -> str:
    """Whose step times the market's models have on an accelerator: the artifact's where it profiled them."""
    try:
        for name in dict.fromkeys(facts().mix.models):
            step_time(name, accelerator, source="aegaeon")
    except UserError:
        return "roofline"
    return "aegaeon"


def models_on(
    context: Context, count: int, cluster: str, variant: str = "paper", only: str = ""
) -> dict[str, PoolModel]:
    """The market's models on a cluster's accelerators; all alike where `only` names one of the mix."""
    accelerator = context.cluster(cluster).accelerator
    made = _market_models(count, accelerator, variant)
    for model in {model.name: model for model in made.values()}.values():
        context.cite(
            f"{model.name}, weights", model.weight_bytes, "bytes", "computed", facts().variants[variant].source
        )
        context.cite(f"{model.name}, decode step of one", model.decode[0], "s", "fitted", model.source)
    if only:
        one = next(model for model in made.values() if model.name == only)
        return dict.fromkeys(made, one)
    return dict(made)


@functools.lru_cache(maxsize=64)
def _market_models(count: int, accelerator: Accelerator, variant: str) -> dict[str, PoolModel]:
    """Kept, as is the trace: every system of a figure serves the same."""
    return market_models(count, accelerator, variant, steps_on(accelerator))


_market_trace = functools.lru_cache(maxsize=64)(market_trace)


def serve(
    context: Context,
    count: int,
    rate_per_s: float,
    duration_s: float,
    *,
    cluster: str,
    system: str = AEGAEON,
    variant: str = "paper",
    generator: str = "artifact",
    prompt_factor: float = 1.0,
    output_factor: float = 1.0,
    only: str = "",
    lead: int | None = None,
    **changes: Any,
) -> PoolRun:
    """One point: so many models under the synthetic market, served by a system.

    Parameters:
        context: its backend runs the pool, its seed draws the requests: those of a model stay the same when models are
            added, and are the same for every system.
        count, rate_per_s, duration_s, generator, prompt_factor, output_factor: see `market_trace`.
        cluster, variant: see `pooling_on`. system: a key of `SYSTEMS`. only: see `models_on`.
        lead: prefill instances; the others of the cluster decode. changes: fields of `Pooling`.
    """
    context.check()
    hosts = context.cluster(cluster)
    if lead is not None:
        changes |= {"prefill": lead, "decode": hosts.accelerators - lead}
    trace = _market_trace(
        count, rate_per_s, duration_s, generator=generator, prompt_factor=prompt_factor, output_factor=output_factor,
        seed=context.seed,
    )  # fmt: skip
    models = models_on(context, count, cluster, variant, only)
    pooling = pooling_on(hosts, variant, system=SYSTEMS[system], **changes)
    return pooled(pooling, models, trace, backend=simulate if context.backend == "simpy" else None)


def promise(scale: float = 1.0) -> SLO:
    """10 s to the first token and 0.1 s between tokens, times a factor."""
    return make_slo("aegaeon") if scale == 1 else make_slo("aegaeon").scaled(scale)


def crossing(places: Sequence[float], values: Sequence[float]) -> float:
    """Where a curve that begins at 1 first falls below `GOOD`, linear in between; NaN where it does not."""
    places, values = [0.0, *places], [1.0, *values]
    for k in range(1, len(places)):
        if values[k] < GOOD:
            share = (values[k - 1] - GOOD) / (values[k - 1] - values[k])
            return float(places[k - 1] + share * (places[k] - places[k - 1]))
    return float("nan")


def realised(run: PoolRun, count: int, rate_per_s: float, duration_s: float) -> float:
    """Requests that came over those that were nominally to come."""
    return run.outcome.status.size / (count * rate_per_s * duration_s)


def rates_of(run: PoolRun, scale: float = 1.0) -> dict[str, float]:
    """Attainment by every definition, and switches a second."""
    found = run.attainment(promise(scale))
    span_s = max(run.span_s, 1e-9)
    return {**found, "switches_per_s": len(run.outcome.switches) / span_s, "mean_pace": _mean(run.outcome.rounds[:, 3])}


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")
