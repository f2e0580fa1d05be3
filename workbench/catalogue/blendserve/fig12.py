"""Figure 12: other models, each with traces of its own."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.blending.model.running import DENSE_BATCH
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_DFS,
    OPTIMAL,
    TRACES,
    Setup,
    cite_sources,
    costs_for,
    limits,
    made,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, MEASURED, STRONGER, On, Overlap, Requests, Scan
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Assumption, Match, experiment

MODELS = {"qwen2.5-7b": 1, "llama-2-7b": 1, "qwen2.5-72b": 8, "deepseek-llm-67b": 8}
"""Model -> accelerators that share its layers: ASPLOS'26 paper §6.2."""
LARGE_BATCH = 2048
QUICK = 50_000
QUICK_TRACES = ("Trace#1", "Trace#4")
GAIN, PLACE = f"{BLEND} over {NF_DFS}", "four models, four traces"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["gain"].filter(pl.col("replication") == 0)
    return (
        f"On four other models {BLEND} gains {table['gain'].min():.2f} to {table['gain'].max():.2f} over the order "
        f"down the tree, {table['gain'].mean():.2f} on average, and reaches {table['share'].mean():.1%} of the optimum."
    )


@experiment(
    "blendserve/fig12",
    title="Other models",
    question="Does the gain hold for models with other shapes, each with traces made for it?",
    backends=("compiled",),
    seconds={"compiled": 60},
    draw="blending_maps.models",
    say=_say,
    stochastic=True,
    matches=(
        Match(
            assumptions=(Assumption("kernels disturb each other as NanoFlow measured", {"overlap": STRONGER}),),
        ),
    ),
)
def fig12(
    context: Context,
    *,
    accelerator: On = "a100-80gb-sxm",
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:
    """Sixteen mixes: densities scale as parameters over KV bytes, so another model needs other counts."""
    rates, rows = rates_of(context, accelerator, overlap), []
    cite_sources(context, "burstgpt-like")
    for model, tp in MODELS.items():
        costs = costs_for(context, model, accelerator, tp)
        engine, batch = rates.engine(costs), DENSE_BATCH if tp == 1 else LARGE_BATCH
        for trace, (density, ratio) in TRACES.items():
            if context.mode == "quick" and trace not in QUICK_TRACES:
                continue
            context.tell(f"{model}, {trace}")
            setup = Setup(costs, "burstgpt-like", density, ratio, size_of(context, requests, QUICK), context.seed)
            pool = made(setup).mix.pool
            blend, down = (
                served(setup, system, scan=scan, batch=batch).throughput(pool, engine) for system in (BLEND, NF_DFS)
            )
            best = pool.tokens / limits(setup, rates).practical_s
            rows.append(
                {"model": model, "trace": trace, NF_DFS: down, BLEND: blend, OPTIMAL: best, "gain": blend / down,
                 "share": blend / best, "videos": made(setup).mix.counts["OpenVid"]}
            )  # fmt: skip
            context.so_far({"throughput": _throughput(pl.DataFrame(rows))})
    table = pl.DataFrame(rows)
    gain = table["gain"]
    known = [
        (f"{GAIN}, mean", PLACE, gain.mean(), "1"),
        (f"{GAIN}, largest", PLACE, gain.max(), "1"),
        (f"{BLEND} over the practical optimum, mean", PLACE, table["share"].mean(), "1"),
    ]
    if len(table) == len(MODELS) * len(TRACES):
        known.append((f"{GAIN}, each of the 16 cells [acceptance]", "", gain.min(), "1"))
    known += [(f"{GAIN}, {row['model']}", row["trace"], row["gain"], "1") for row in rows]
    return {"gain": table.drop(NF_DFS, BLEND, OPTIMAL), "throughput": _throughput(table), "headline": headline(known)}


def _throughput(table: pl.DataFrame) -> pl.DataFrame:
    return table.unpivot(
        [NF_DFS, BLEND, OPTIMAL], index=["model", "trace"], variable_name="system", value_name="tokens_per_s"
    )
