"""Figure 8: prefill and decode on accelerators of their own, beside one engine that does both."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.blending.model.disaggregated import disaggregated_s, halves
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_DFS,
    TRACES,
    USUAL,
    VLLM,
    Setup,
    cite_sources,
    costs_for,
    made,
    planned,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, On, Requests, Scan, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Ordering, experiment

GROUPS = {"2P1D": (2, 1), "1P1D": (1, 1), "1P2D": (1, 2), "1P3D": (1, 3)}
BEST = "best of the disaggregated set-ups"
ALL = "mean of the four"
QUICK = 50_000


def _series(name: str) -> str:
    return f"throughput per GPU, {name}"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["throughput"].filter(pl.col("replication") == 0)
    rate = dict(table.select("system", "tokens_per_s").iter_rows())
    where = "average over the four traces" if parameters["trace"] == ALL else parameters["trace"]
    best = max(GROUPS, key=lambda name: rate[name])
    return (
        f"On {where} the best split ({best}) serves {rate[best]:,.0f} tokens/s a GPU, vLLM "
        f"{rate[VLLM]:,.0f} and {BLEND} {rate[BLEND]:,.0f}."
    )


@experiment(
    "blendserve/fig8",
    title="Against disaggregated prefill and decode",
    question="Do separate accelerators for prefill and decode use the hardware better than one engine for both?",
    backends=("compiled",),
    seconds={"compiled": 3},
    draw="blending.disaggregated",
    say=_say,
    stochastic=True,
    orderings=(
        Ordering("every disaggregated set-up below vLLM, vLLM below BlendServe",
                 tuple(map(_series, (BEST, VLLM, BLEND)))),
        Ordering("two prefill accelerators help less than two that decode", tuple(map(_series, ("2P1D", "1P2D")))),
    ),
)  # fmt: skip
def fig8(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    trace: Annotated[
        str, Par("Trace", choices=(ALL, *TRACES), free=True, source="chosen: the figure does not say which it shows")
    ] = ALL,
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
) -> dict[str, pl.DataFrame]:
    """Tokens per second and accelerator; a disaggregated set-up is as fast as its slower group, source after source.

    Prefill and decode each do one thing after the other, as SGLang does; KV moves at no cost.
    """
    costs = costs_for(context, model, accelerator)
    cite_sources(context, "burstgpt-like")
    chosen = TRACES if trace == ALL else {trace: TRACES[trace]}
    rates, parts, found = rates_of(context, accelerator), [], []
    for name, (density, ratio) in chosen.items():
        context.tell(name)
        setup = Setup(costs, "burstgpt-like", density, ratio, size_of(context, requests, QUICK), context.seed)
        pool = made(setup).mix.pool
        known, _ = planned(setup, USUAL)
        half = halves(pool, made(setup).tree, known, costs, rates.engine(costs, VLLM))
        parts.append(pl.DataFrame({"trace": name, "source": pool.sources, **half._asdict()}))
        rate = {group: pool.tokens / disaggregated_s(half, *sizes) / sum(sizes) for group, sizes in GROUPS.items()}
        for system in (VLLM, BLEND):
            run = served(setup, NF_DFS if system == VLLM else system, scan=scan)
            rate[system] = run.throughput(pool, rates.engine(costs, system))
        found.append(rate)
        context.so_far({"throughput": pl.DataFrame(_mean(found))}, trace=", ".join(list(chosen)[: len(found)]))
    rows = _mean(found)
    best = max(row["tokens_per_s"] for row in rows if row["system"] in GROUPS)
    known_rows = [(_series(row["system"]), "", row["tokens_per_s"], "tokens/s") for row in rows]
    known_rows.append((_series(BEST), "", best, "tokens/s"))
    return {"throughput": pl.DataFrame(rows), "halves": pl.concat(parts), "headline": headline(known_rows)}


def _mean(found: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Each system's mean over the traces."""
    return [
        {
            "system": name,
            "gpus": sum(GROUPS.get(name, (1,))),
            "tokens_per_s": sum(one[name] for one in found) / len(found),
        }
        for name in found[0]
    ]
