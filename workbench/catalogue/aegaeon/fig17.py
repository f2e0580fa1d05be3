"""Figure 17: small GPUs, and large models on four GPUs each."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.pools import realised
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.monotone import monotone
from workbench.catalogue.spec import Assumption, Ordering, experiment
from workbench.pooling import PoolModel, market_trace, pool_model, pooled, pooling_on
from workbench.profiles import slo
from workbench.results import Verdict

LOW, HIGH = "aegaeon-a10", "aegaeon-h800-tp4"
PROMISES = {
    "left": {"Loose": "aegaeon-a10-loose", "Normal": "aegaeon-a10", "Strict": "aegaeon-a10-strict"},
    "right": {"Loose": "aegaeon-tp4-loose", "Normal": "aegaeon-tp4", "Strict": "aegaeon-tp4-strict"},
}
A10_MODELS = ("yi-1.5-6b", "qwen2.5-7b")
MODELS = (4, 5, 6, 7, 8, 9, 10)
RATES = (0.4, 0.8, 1.2, 1.6, 2.0, 2.4)
SPAN_S = 120.0


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table, parts = tables["curve"], []
    for panel, words in (("left", "models on four A10"), ("right", "requests per s of four 72B models")):
        far = table.filter(pl.col("panel") == panel)["x"].max()
        at = table.filter((pl.col("panel") == panel) & (pl.col("x") == far))
        mean = at.group_by("promise", maintain_order=True).agg(pl.col(parameters["metric"]).mean())
        texts = [f"{value:.2f} {promise.lower()}" for promise, value in mean.iter_rows()]
        parts.append(f"{far:g} {words}: {', '.join(texts)}")
    return f"Attainment of the three promises with {'; '.join(parts)}."


def _judge(draft: Draft) -> list[Verdict]:
    table, found = draft.tables["curve"], []
    metric = draft.parameters["metric"]
    part = table.filter((pl.col("panel") == "right") & (pl.col("promise") == "Normal"))
    runs = [group.sort("x")[metric].to_list() for _, group in part.group_by("replication", maintain_order=True)]
    blame = "each rate is a draw of its own"
    claim = "attainment of the usual promise falls with the rate (72B)"
    found.append(monotone(draft, claim, [[run[0], run[-1]] for run in runs], falling=True, blame=blame))
    return found


def _order(panel: str, x: str, words: str) -> Ordering:
    series = tuple(f"attainment, {panel} panel, {promise}" for promise in ("Strict", "Normal", "Loose"))
    return Ordering(f"{words}: a loose promise is kept better than the usual one, and that better than a strict one",
                    series, x, (Assumption("one draw of requests", {"arrivals": "poisson"}),))  # fmt: skip


@experiment(
    "aegaeon/fig17",
    title="Does pooling work on small GPUs, and for large models?",
    question="How is attainment on four A10, and of 72B models on four GPUs each, by how strict the promise is?",
    backends=("compiled",),
    seconds={"compiled": 1.5},
    draw="pooling_runs.ends",
    panels=("left", "right"),
    say=_say,
    stochastic=True,
    orderings=(_order("left", "10", "four A10, ten models"), _order("right", "2.4", "four 72B models, 2.4 per s")),
    judges=(_judge,),
)
def fig17(
    context: Context,
    *,
    metric: pools.Metric = "qos-artifact",
    arrivals: pools.Arrivals = "artifact",
    quota_s: pools.Quota = 4.0,
) -> dict[str, pl.DataFrame]:
    """Attainment by four definitions: 4 to 10 small models on four A10 without prefetch, and four 72B models.

    The step times of the latter are those of the roofline, since no profile of one is published.
    """
    rows = []
    a10, h800 = context.cluster(LOW), context.cluster(HIGH)
    small = [pool_model(name, a10.accelerator) for name in A10_MODELS]
    large = pool_model("qwen2.5-72b", h800.accelerator, tp=4, steps="roofline")
    for made in (*small, large):
        context.cite(f"{made.name}, decode step of one", made.decode[0], "s", "fitted", made.source)
    for count in MODELS[::3] if context.mode == "quick" else MODELS:
        models = {name: small[k % 2] for k, name in enumerate(pools_names(count))}
        options = {"prefill": 2, "decode": 2, "prefetch": "off"}
        rows += _points(context, "left", count, 0.1, float(count), models, a10, options, arrivals, quota_s)
    for rate in RATES[::5] if context.mode == "quick" else RATES:
        models = dict.fromkeys(pools_names(4), large)
        options = {"prefill": 1, "decode": 1, "accelerators": 4}
        rows += _points(context, "right", 4, rate / 4, rate, models, h800, options, arrivals, quota_s)
    known = [(f"attainment, {row['panel']} panel, {row['promise']}", row["x"], row[metric], "1") for row in rows]
    return {"curve": pl.DataFrame(rows), "headline": headline(known)}


def pools_names(count: int) -> list[str]:
    """Names of the market's models."""
    return [f"model-{k:03d}" for k in range(1, count + 1)]


def _points(
    context: Context, panel: str, count: int, rate: float, x: float, models: Mapping[str, PoolModel], cluster: Any,
    options: Mapping[str, Any], arrivals: str, quota_s: float,
) -> list[dict[str, Any]]:  # fmt: skip
    rows = []
    trace = market_trace(count, rate, SPAN_S, generator=arrivals, seed=context.seed)
    for promise, name in PROMISES[panel].items():
        context.tell(f"{panel}, {promise}: {x:g}")
        kept = slo(name)
        pooling = pooling_on(cluster, quota_s=quota_s, ttft_s=float(kept.ttft_s), tbt_s=float(kept.tbt_s), **options)
        run = pooled(pooling, models, trace)
        about = {"panel": panel, "promise": promise, "x": x, "realised": realised(run, count, rate, SPAN_S)}
        rows.append(about | run.attainment(kept))
    return rows
