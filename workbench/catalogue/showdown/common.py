"""What the experiments across the papers share: one burst, and systems that differ in what is compared alone."""

from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.latency import step_time
from workbench.operating import Run, simulate, system
from workbench.operating.scaling_rule import Rule
from workbench.operating.system_record import System
from workbench.profiles import SLO, Cluster, Deployment, Model
from workbench.queueing.statistics import ends_over_runs
from workbench.workloads import PiecewisePoisson, Trace, fixed_lengths, generate

IDEAL, SLLM, ALLCACHE, FAASNET, NCCL, LAMBDA, BLITZ = (
    "ideal", "ServerlessLLM", "AllCache", "FaaSNet", "NCCL", "λScale", "BlitzScale",
)  # fmt: skip
SYSTEMS = {
    IDEAL: "ideal",
    SLLM: "serverlessllm@blitzscale",
    ALLCACHE: "allcache",
    FAASNET: "faasnet",
    NCCL: "nccl",
    LAMBDA: "lambdascale",
    BLITZ: "blitzscale",
}
"""Label -> system, the same in every experiment."""

ONE_FOR_ALL = {
    "engine": "continuous",
    "dispatch": "least-outstanding",
    "roles": "together",
    "limit": None,
    "batch_tokens": None,
    "provisioning": "least",
    "least": 1,
    "tick_s": 0.1,
    "scrape_s": 0.0,
    "keep_s": 1 / 3,
}
"""Choices that are the same for all systems here, whatever their papers say of them; BlitzScale's instances too do both
phases. What is left to differ: where weights come from, by which plan, what hosts keep, and who serves before it has
all of them (with the 0.1 s in which NCCL makes a group)."""

RULES = {
    "backlog": Rule(policy="backlog", down_step=1),
    "rate": None,
}
"""How many instances there are: by what waits (BlitzScale's artifact), which slow starts make more, or by the requests
that arrive, which no start changes: there, all systems want the same instances at the same times."""

CALM_S = 10.0
"""Before and after a burst."""

ClusterPar = Annotated[str, Par("Cluster", profile="cluster", source="chosen: BlitzScale's, with fast links in hosts")]
ModelPar = Annotated[str, Par("Model", profile="model", source="chosen: fits one accelerator")]
Ttft = Annotated[
    float,
    Par(
        "Promised TTFT", "s", low=0.05, high=30, log=True, status="published", source="OSDI'25 paper §3: 0.45 s for 8B"
    ),
]
Tbt = Annotated[
    float,
    Par("Promised TBT", "s", low=0.005, high=1, log=True, status="published", source="OSDI'25 paper §3: 0.15 s for 8B"),
]
Prompt = Annotated[int, Par("Prompt tokens", low=64, high=8192, log=True, source="chosen: about those of code traces")]
Output = Annotated[int, Par("Output tokens", low=2, high=1000, log=True, source="chosen: short, as burst tests are")]
Seeds = Annotated[int, Par("Seeds", low=1, high=20, step=1, source="chosen: enough for an interval")]


def levelled(name: str, rule: str = "backlog", requests_per_s: float = 1.0) -> System:
    """A system by label, with everything the same for all but its source, plan, partial serving and cache.

    Parameters:
        name: a key of `SYSTEMS`.
        rule: a key of `RULES`.
        requests_per_s: that an instance is meant for, by the rule *rate*.
    """
    scaler = RULES[rule] or Rule(policy="rate", parameters={"requests_per_s": requests_per_s})
    return system(SYSTEMS[name], **ONE_FOR_ALL | {"autoscaler": scaler, "least": 1, "name": name})


def burst_trace(calm_per_s: float, burst_per_s: float, burst_s: float, prompt: int, output: int, seed: int) -> Trace:
    """Poisson arrivals, calm, then a burst, then calm again; all requests of one length."""
    process = PiecewisePoisson(lengths_s=(CALM_S, burst_s, CALM_S), rates_per_s=(calm_per_s, burst_per_s, calm_per_s))
    return generate(process, fixed_lengths(prompt, output), duration_s=2 * CALM_S + burst_s, seed=seed)


def run(
    context: Context, one: System, cluster: Cluster, models: Any, table: pl.DataFrame, seed: int, promise: SLO, **more
) -> Run:
    """Serve requests by one system on the backend that is asked."""
    context.check()
    return simulate(
        one, cluster=cluster, models=models, trace=table, deployment=Deployment(), slo=promise, seed=seed,
        backend=context.backend, **more,
    )  # fmt: skip


def of_most_models(pools: pl.DataFrame, by: str, *columns: str) -> tuple[int, list[dict[str, Any]]]:
    """The largest number of models, and with so many the means of some columns by the first backend, a row for each
    value of `by`."""
    table = pools.filter(pl.col("backend") == pools["backend"][0]).filter(pl.col("models") == pl.col("models").max())
    return table["models"][0], table.group_by(by, maintain_order=True).agg(pl.col(columns).mean()).to_dicts()


def capacity_per_s(context: Context, model: Model, cluster: Cluster, prompt: int, output: int) -> float:
    """Requests/s that keep one instance busy: prompts in full steps, and a share of batched steps for each token."""
    step = step_time(model, cluster.accelerator, Deployment())
    batch = 32
    seconds = (
        float(step.prefill_s(prompt)) + output * float(step.decode_s(batch, batch * (prompt + output / 2))) / batch
    )
    return context.cite(
        "requests an instance bears", 1 / seconds, "1/s", "computed", f"{step.source}; batches of {batch}"
    )


def paired(table: pl.DataFrame, measures: tuple[str, ...], base: str) -> pl.DataFrame:
    """Means over seeds with 95 % intervals, and differences from a base on the same seeds with theirs.

    Parameters:
        table: `system`, `seed` and the measures.
        base: the system that the others are compared with.

    Returns:
        `system, measure, mean, low, high, difference, difference_low, difference_high`; intervals are missing for a
        single seed, and numbers where no seed has one.
    """
    rows, schema = [], {"system": pl.String, "measure": pl.String}
    for measure in measures:
        first = _known(table.filter(pl.col("system") == base), measure)
        for (name,), part in table.group_by("system", maintain_order=True):
            values = _known(part, measure)
            both = [values[seed] - first[seed] for seed in values if seed in first]
            ends, apart = ends_over_runs(list(values.values())), ends_over_runs(both)
            mean = sum(values.values()) / len(values) if values else None
            difference = sum(both) / len(both) if both else None
            rows.append((name, measure, mean, *(ends or (None, None)), difference, *(apart or (None, None))))
    numbers = ("mean", "low", "high", "difference", "difference_low", "difference_high")
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(numbers, pl.Float64), orient="row")


def _known(table: pl.DataFrame, measure: str) -> dict[int, float]:
    """seed -> value, of seeds that have one."""
    values = pl.col(measure).cast(pl.Float64)
    return dict(table.filter(values.is_not_null() & values.is_not_nan()).select("seed", values).rows())
