"""A pool of rarely asked models: one GPU for each, GPUs shared in space, by requests, or token by token."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.showdown.common import of_most_models, paired
from workbench.catalogue.spec import Agree, experiment
from workbench.operating.pool_tables import found_metrics
from workbench.pooling import PoolModel, PoolRun, pooled, pooling_on
from workbench.pooling.model.market import market_lengths
from workbench.pooling.simulated import simulate
from workbench.queueing import active_models
from workbench.workloads import Trace, market, zipf_rates

DEDICATED, MUX, SLLM, AEGAEON = "dedicated", "MuxServe", "ServerlessLLM", "Aegaeon"
SYSTEMS = {DEDICATED: "dedicated", MUX: "muxserve", SLLM: "serverlessllm@aegaeon", AEGAEON: "aegaeon"}
"""Label -> key of `workbench.pooling.policy.SYSTEMS`; all are run as Aegaeon's paper says, so that a switch takes the
same time for all."""

MEASURES = ("attainment", "ttft_p99_s", "gpu_allocated_s", "gpu_active_s", "switches")
QUICK_S = 40.0

Most = Annotated[int, Par("Most models", low=8, high=128, step=4, source="chosen: up to four a GPU")]
Rate = Annotated[
    float, Par("Requests of a model", "1/s", low=0.01, high=2, log=True, source="chosen: SOSP'25 §7.2: 0.1")
]
Tail = Annotated[float, Par("How long the tail is", low=0, high=2, step=0.1, source="chosen: Zipf's exponent")]
Duration = Annotated[float, Par("Requests come for", "s", low=20, high=600, step=20, source="chosen")]
Seeds = Annotated[int, Par("Seeds", low=1, high=10, step=1, source="chosen: enough for an interval")]


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    if "pools" not in tables:
        row = tables["active"].sort("models").row(-1, named=True)
        return (
            f"Of {row['models']} models {row['mean_active']:.1f} are active at a time, and {row['most']} in 1 % of it."
        )
    count, rows = of_most_models(tables["pools"], "system", "attainment", "gpus")
    text = ", ".join(f"{row['system']} {row['attainment']:.1%} on {row['gpus']:.0f}" for row in rows)
    return f"With {count} models so much of the promise is kept: {text} GPUs."


@experiment(
    "showdown/pool",
    title="Who pools the long tail?",
    question="How many rarely asked models do so many GPUs serve when each has its own, when they share GPUs in space, "
    "by whole requests, or token by token?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.1, "compiled": 3.0, "simpy": 12.0},
    draw="showdown_pools.pool",
    panels=("attainment", "pareto", "active"),
    say=_say,
    stochastic=True,
    agrees=(
        Agree("attainment", "pools", ("system", "models", "seed"), "attainment", {("compiled", "simpy"): (0, 0)}),
        Agree(
            "active models", "active", ("models",), "mean_active",
            {("analytic", "compiled"): (-0.3, 0.3), ("analytic", "simpy"): (-0.3, 0.3)},
        ),
    ),
)  # fmt: skip
def pool(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    most: Most = 64,
    rate_per_s: Rate = 0.2,
    tail: Tail = 1.0,
    duration_s: Duration = 120.0,
    seeds: Seeds = 3,
) -> dict[str, pl.DataFrame]:
    """Attainment by the paper's definition, TTFT, GPU time and switches for up to `most` models.

    The formula tells how many models are active, were each request served at once and alone (M/G/∞): no system that
    serves whole requests does with fewer GPUs. Dedicated GPUs, one a model, are counted beyond those of the cluster.
    The simulated number of active models is of the dedicated ones.
    """
    hosts, rows, active = context.cluster(cluster), [], []
    if context.mode == "quick":
        duration_s, seeds = min(duration_s, QUICK_S), 1
    counts = [most // 2, most] if context.mode == "quick" else [most // 4, most // 2, 3 * most // 4, most]
    for count in counts:
        models = pools.models_on(context, count, cluster)
        for seed in range(context.seed, context.seed + seeds):
            trace = tail_trace(count, rate_per_s, tail, duration_s, seed)
            if context.backend == "analytic":
                found = active_models(
                    list(zipf_rates(count, count * rate_per_s, tail).values()), alone_s(models, trace)
                )
                active.append({"models": count, "mean_active": found.mean_active, "most": found.quantile(0.99)})
                break
            for name, system in SYSTEMS.items():
                context.tell(f"{name}, {count} models, seed {seed}")
                run = pooled(pooling_on(hosts, system=system), models, trace, backend=engine(context))
                rows.append({"system": name, "models": count, "seed": seed, **told(run)})
                if name == DEDICATED and seed == context.seed:
                    active.append({"models": count, "mean_active": rows[-1]["gpu_active_s"] / duration_s, "most": None})
    table = pl.DataFrame(active, schema_overrides={"most": pl.Int64})
    known = [("active models", row["models"], row["mean_active"], "1") for row in active]
    if context.backend == "analytic":
        return {"active": table, "headline": headline(known)}
    runs = pl.DataFrame(rows)
    largest = paired(runs.filter(pl.col("models") == counts[-1]), MEASURES, DEDICATED)
    return {"pools": runs, "summary": largest, "active": table, "headline": headline(known)}


def engine(context: Context) -> Callable | None:
    """The pooling engine that is asked, None for the compiled one."""
    return simulate if context.backend == "simpy" else None


def tail_trace(count: int, rate_per_s: float, tail: float, duration_s: float, seed: int) -> Trace:
    """Poisson requests to a long tail of models, with lengths as in Aegaeon's artifact."""
    rates = zipf_rates(count, count * rate_per_s, tail)
    return market(rates, market_lengths(), duration_s=duration_s, seed=seed)


def alone_s(models: Mapping[str, PoolModel], trace: Trace) -> list[float]:
    """Mean seconds that a request of the trace's lengths takes by itself, for each model."""
    lengths = trace.requests.select(
        prompt=pl.col("prompt_tokens").cast(float), output=pl.col("output_tokens").cast(float)
    )
    prompt, output = lengths["prompt"].to_numpy(), lengths["output"].to_numpy()
    found = []
    for one in models.values():
        fixed, token, square, least = one.prefill
        whole = fixed + (token * prompt).clip(least) + square * prompt**2
        step = one.decode[0] + one.decode[1] * (prompt + output / 2) + one.decode[2]
        found.append(float((whole + output * step).mean()))
    return found


def told(run: PoolRun) -> dict[str, float]:
    """What a pool is compared by."""
    found = found_metrics(run, pools.promise(), 1)
    counts = {name: found[name] for name in ("arrived", "done", "rejected", "failed")}
    return {name: found[name] for name in MEASURES} | counts | {"gpus": found["peak_gpus"]}
