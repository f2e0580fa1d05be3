"""Figure 16: how much of the host's slabs is taken but free, by the size of a slab."""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Assumption, Match, experiment
from workbench.errors import UserError
from workbench.pooling import PoolRun, market_trace, pool_model, pooled, pooling_on
from workbench.pooling.model.fragmentation import replay_slabs
from workbench.results import Verdict

SERIES = "fragmentation over all shapes"
SHAPES = ("qwen2.5-7b", "yi-1.5-6b", "yi-1.5-9b", "internlm2.5-7b", "llama-2-7b", "llama-2-13b")
SLABS_MIB = (64, 256, 1024, 4096)
REGION_BYTES = 256 * 2**30
SPAN_S = 120.0


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["slabs"].filter(pl.col("shape") == "all")
    mean = table.group_by("slab_mib", maintain_order=True).agg(pl.col("fragmentation").mean()).sort("slab_mib")
    texts = [f"{share:.0%} with slabs of {mib:,} MiB" for mib, share in mean.iter_rows()]
    return f"Taken but free is {', '.join(texts)}."


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["slabs"].filter(pl.col("shape") == "all")
    mean = table.group_by("slab_mib").agg(pl.col("fragmentation").mean()).sort("slab_mib")["fragmentation"].to_list()
    right = all(a <= b for a, b in itertools.pairwise(mean))
    return [
        Verdict(
            claim="larger slabs leave more of them taken but free",
            published="rises",
            ours=", ".join(f"{value:.3f}" for value in mean),
            strength="ordering",
            verdict="not comparable" if not draft.comparable else "reproduced" if right else "differs",
            reason=draft.reason
            or "from the smallest slabs to the largest"
            + ("" if right else ". Assumed here: the same run for all sizes"),
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "aegaeon/fig16",
    title="How much memory do slabs waste?",
    question="How much of the slabs in host memory is taken but free when six models of different shapes share them?",
    backends=("compiled",),
    seconds={"compiled": 3.0},
    draw="pooling_memory.fragmentation",
    panels=("shapes", "sizes"),
    say=_say,
    stochastic=True,
    matches=(
        Match((SERIES,), assumptions=(
            Assumption("two hosts, each with 0.1 requests per s of 32 models", {"rate_per_s": 0.3}),
        )),
    ),
    judges=(_judge,),
)  # fmt: skip
def fig16(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    variant: pools.Way = "paper",
    arrivals: pools.Arrivals = "artifact",
    models: Annotated[int, Par("Models", low=6, high=120, step=6, source="chosen: the set-up is not stated")] = 66,
    rate_per_s: Annotated[
        float, Par("Requests of a model", "1/s", low=0.02, high=1, log=True, source="0.1 in Fig 11a")
    ] = 0.1,
    slab_mib: Annotated[
        int, Par("Slab", "MiB", low=64, high=4096, log=True, status="published", source="artifact: 1 GiB")
    ] = 1024,
) -> dict[str, pl.DataFrame]:
    """Bytes used and bytes of slabs of one host, by shape, at the moment of their peak, for several sizes of a slab.

    A run's KV caches are replayed through the allocator in the order in which they came and went. The six shapes are
    ours: the paper does not name its own.
    """
    run = _run(context, cluster, variant, arrivals, models, rate_per_s)
    names = {pool.kv_bytes_per_token * 16: pool.name for pool in _models(context, cluster, models).values()}
    rows, known = [], []
    for mib in sorted({slab_mib, *(SLABS_MIB[1:] if context.mode == "quick" else SLABS_MIB)}):
        context.tell(f"slabs of {mib} MiB")
        found = replay_slabs(run.lowered, run.outcome, mib * 2**20, max(1, REGION_BYTES // (mib * 2**20)))
        for row in found.shapes.to_dicts():
            shape = names[row["shape"]] if row["shape"] else "all"
            rows.append({"slab_mib": mib, **row, "shape": shape, "failures": found.failures})
            if mib == slab_mib and shape == "all":
                known.append((SERIES, "", row["fragmentation"], "1"))
    return {"slabs": pl.DataFrame(rows), "headline": headline(known)}


def _models(context: Context, cluster: str, count: int):
    accelerator = context.cluster(cluster).accelerator
    made = []
    for name in SHAPES:
        try:
            made.append(pool_model(name, accelerator))
        except UserError:  # no profile of it: step times from its shape
            made.append(pool_model(name, accelerator, steps="roofline"))
        context.cite(f"{name}, decode step of one", made[-1].decode[0], "s", "fitted", made[-1].source)
    digits = max(3, len(str(count)))
    return {f"model-{k:0{digits}d}": made[(k - 1) % len(made)] for k in range(1, count + 1)}


def _run(context: Context, cluster: str, variant: str, arrivals: str, models: int, rate_per_s: float) -> PoolRun:
    trace = market_trace(models, rate_per_s, SPAN_S, generator=arrivals, seed=context.seed)
    return pooled(pooling_on(context.cluster(cluster), variant), _models(context, cluster, models), trace)
