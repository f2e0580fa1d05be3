"""Beyond the paper: whose promises are kept when one owner of models asks for too much."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.pools import models_on, promise
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.pooling import PoolRun, pooled, pooling_on
from workbench.pooling.model.lowered import REJECTED
from workbench.pooling.model.market import market_lengths
from workbench.pooling.simulated import simulate
from workbench.results import Verdict
from workbench.workloads import Trace, market

WAYS = {
    "everybody": {"admission": "everybody"},
    "promises": {"admission": "look-ahead"},
    "promises and shares": {"admission": "look-ahead"},
}
"""Nobody is turned away; those whose promise could not be kept are; and owners beyond their share are, too."""
LIMITED = "promises and shares"
OWNERS = ("A", "B", "C")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["summary"].filter(pl.col("backend") == tables["summary"]["backend"][0])
    mean = table.group_by("way", maintain_order=True).agg(pl.col("least", "weighted").mean()).to_dicts()
    texts = [f"{row['least']:.0%} of the worst owner's and {row['weighted']:.0%} of all ({row['way']})" for row in mean]
    return f"Served as promised are {', '.join(texts)}."


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["summary"]
    table = table.filter(pl.col("backend") == table["backend"][0])
    mean = dict(table.group_by("way").agg(pl.col("least").mean()).iter_rows())
    if not set(WAYS) <= set(mean):
        return []
    right = mean[LIMITED] >= mean["everybody"]
    return [
        Verdict(
            claim="with shares the worst-served owner keeps more of its promises than without control",
            published="to be met",
            ours=", ".join(f"{mean[way]:.2f} {way}" for way in WAYS),
            strength="ordering",
            verdict="not comparable" if not draft.comparable else "reproduced" if right else "differs",
            reason=draft.reason
            or "smallest share over owners of requests served as promised"
            + ("" if right else ". Assumed here: equal shares"),
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "aegaeon/fairness",
    title="Whose promises are kept?",
    question="When one of three owners asks for several times its share, whose requests are served as promised, and "
    "whose fill the host's memory?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 2.0, "simpy": 1.0},
    draw="pooling_beyond.owners",
    panels=("kept", "memory"),
    say=_say,
    stochastic=True,
    judges=(_judge,),
    agrees=(
        Agree("requests served as promised", "owners", ("way", "owner"), "kept", {("compiled", "simpy"): (0, 0)}),
        Agree("host memory", "owners", ("way", "owner"), "byte_seconds", {("compiled", "simpy"): (-1e-9, 1e-9)}),
    ),
)  # fmt: skip
def fairness(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    models: Annotated[int, Par("Models of each owner", low=2, high=32, free=True, source="chosen: overload")] = 16,
    rate_per_s: Annotated[
        float, Par("Requests of a model", "1/s", low=0.02, high=0.5, log=True, free=True, source="0.1 in Fig 11a")
    ] = 0.1,
    greed: Annotated[
        float, Par("Owner A asks so many times that", low=1, high=20, step=0.5, free=True, source="chosen")
    ] = 4.0,
    share: Annotated[
        int, Par("Requests of an owner inside, at most", low=1, high=200, free=True, source="chosen: an equal share")
    ] = 40,
    crowded: Annotated[
        int, Par("counted once so many are inside", low=0, high=500, free=True, source="chosen: half of the shares")
    ] = 60,
) -> dict[str, pl.DataFrame]:
    """Of three owners on three prefill and five decode GPUs: requests served as promised, rejected, and byte-seconds of
    host memory, with everybody admitted, with promises only, and with a share for each owner as well.

    The *least* share is that of the worst-served owner, *weighted* that of all requests, *by memory* weighted with the
    byte-seconds that the requests took.
    """
    trace = _trace(context, models, rate_per_s, greed)
    ways = {"everybody": WAYS["everybody"]} if context.backend == "simpy" else WAYS
    rows, summary, known = [], [], []
    for way, options in ways.items():
        context.tell(way)
        names = trace.requests["model"].unique(maintain_order=True).sort().to_list()
        owners = {name: name.split("-")[0] for name in names}
        most = dict.fromkeys(OWNERS, share) if way == LIMITED else None
        served = models_on(context, len(names), cluster)
        pooling = pooling_on(context.cluster(cluster), prefill=3, decode=5, nodes=1, owner_from=crowded, **options)
        run = pooled(
            pooling, dict(zip(names, served.values(), strict=True)), trace, owners=owners, owner_most=most,
            backend=simulate if context.backend == "simpy" else None,
        )  # fmt: skip
        found = _by_owner(run, [owners[name] for name in trace.requests["model"]])
        rows += [{"way": way, **row} for row in found]
        summary.append({"way": way, **_summary(found)})
        known += [(f"least share served as promised, {way}", "", summary[-1]["least"], "1")]
        known += [(f"host memory of owner {row['owner']}, {way}", "", row["byte_seconds"], "bytes s") for row in found]
    return {"owners": pl.DataFrame(rows), "summary": pl.DataFrame(summary), "headline": headline(known)}


def _trace(context: Context, models: int, rate_per_s: float, greed: float) -> Trace:
    rates = {
        f"{owner}-{place:03d}": rate_per_s * (greed if owner == OWNERS[0] else 1.0)
        for place in range(models)
        for owner in OWNERS
    }
    return market(rates, market_lengths(), duration_s=60.0, seed=context.seed)


def _by_owner(run: PoolRun, owner: list[str]) -> list[dict[str, Any]]:
    whole, status, held = run.whole(promise()), run.outcome.status, _byte_seconds(run)
    of = np.array(owner)
    return [
        {
            "owner": name,
            "requests": int((of == name).sum()),
            "kept": float(whole[of == name].mean()),
            "rejected": float((status[of == name] == REJECTED).mean()),
            "byte_seconds": float(held[of == name].sum()),
            "kept_byte_seconds": float(held[(of == name) & whole].sum()),
        }
        for name in OWNERS
    ]


def _byte_seconds(run: PoolRun) -> np.ndarray:
    """Of each request: bytes of KV cache in host memory, times seconds."""
    host, sizes = run.outcome.host, run.lowered.models.block_bytes
    held = np.zeros(run.outcome.status.size)
    np.add.at(held, host[:, 2].astype(int), -host[:, 0] * host[:, 4] * sizes[host[:, 3].astype(int)])
    return held


def _summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    count = sum(row["requests"] for row in rows)
    held = sum(row["byte_seconds"] for row in rows)
    return {
        "least": min(row["kept"] for row in rows),
        "weighted": sum(row["kept"] * row["requests"] for row in rows) / count,
        "by_memory": sum(row["kept_byte_seconds"] for row in rows) / held if held else float("nan"),
    }
