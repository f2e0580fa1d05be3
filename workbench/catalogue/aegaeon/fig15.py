"""Figure 15: how long switches take, and how long requests wait for their KV caches."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.fig14 import SETUPS, SPAN_S
from workbench.catalogue.aegaeon.pools import serve
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.pooling import PoolRun

NO_TIME_S = 0.1
SHARE = "left panel: share of switches that take next to no time"
LONGEST = "left panel: longest switch"
SYNC = "right panel: KV synchronisation per request in total"
SIZES = {"qwen2.5-7b": "7B", "yi-1.5-9b": "9B", "llama-2-13b": "13B"}
POINTS = 60


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    known = tables["headline"].filter(pl.col("backend") == tables["headline"]["backend"][0])
    value = {name: float(known.filter(pl.col("series") == name)["value"].mean()) for name in (SHARE, LONGEST, SYNC)}
    return (
        f"{value[SHARE]:.0%} of the switches take less than {NO_TIME_S:g} s, none more than {value[LONGEST]:.2f} s; no "
        f"request waits more than {value[SYNC]:.2g} s in all for its KV cache."
    )


@experiment(
    "aegaeon/fig15",
    title="How long do switches take?",
    question="How many switches find their model prefetched, and how long do requests wait for their KV caches?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 1.0, "simpy": 4.0},
    draw="pooling_runs.switches",
    panels=("switches", "sync"),
    say=_say,
    stochastic=True,
    matches=(
        Match((SHARE,), assumptions=(
            Assumption("a switch prefetches what the round still holds", {"prefetch": "ideal"}),
            Assumption("ten GPUs decode, which leaves them 1.3 batches a round", {"prefill": 10}),
        )),
        Match((LONGEST, SYNC), assumptions=(
            Assumption("each GPU has its way to the host to itself", {"host_bytes_per_s": 4e12}),
        )),
    ),
    agrees=(
        Agree("switches by time", "switches", ("size", "quantile"), "seconds", {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def fig15(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    variant: pools.Way = "paper",
    arrivals: pools.Arrivals = "artifact",
    prefill: pools.Prefill = 6,
    prefetch: Annotated[
        str, Par("Prefetch", choices=("off", "on", "ideal"), status="published", source="SOSP'25 paper §5.2")
    ] = "on",
    host_bytes_per_s: Annotated[
        float,
        Par(
            "Host memory for all transfers of a node",
            "bytes/s",
            low=10e9,
            high=4e12,
            log=True,
            source="chosen: no source states it; the largest value never limits",
        ),
    ] = 4e12,
) -> dict[str, pl.DataFrame]:
    """Distribution of switch times by size of the model at 32x0.1, and of waits for KV caches in five set-ups."""
    setups = {"32x0.1": SETUPS["32x0.1"]} if context.backend == "simpy" else SETUPS
    switches, waits, known = [], [], []
    for setup, (models, rate) in setups.items():
        context.tell(setup)
        run = serve(context, models, rate, SPAN_S, cluster=cluster, variant=variant, generator=arrivals, lead=prefill,
                    prefetch=prefetch, host_bytes_per_s=host_bytes_per_s)  # fmt: skip
        waits += _quantiles(run.outcome.waited_s, {"setup": setup})
        if setup == "32x0.1":
            took_s = run.outcome.switches[:, 1] - run.outcome.switches[:, 0]
            sizes = np.array([SIZES[name] for name in _kinds(run)])
            for size in SIZES.values():
                if (sizes == size).any():
                    switches += _quantiles(took_s[sizes == size], {"size": size})
            x = "32 models, 0.1 per s"
            known += [(SHARE, x, float((took_s < NO_TIME_S).mean()), "1"), (LONGEST, x, float(took_s.max()), "s")]
    table = pl.DataFrame(waits)
    known.append((SYNC, "five set-ups", float(table["seconds"].max()), "s"))
    return {"switches": pl.DataFrame(switches), "waits": table, "headline": headline(known)}


def _kinds(run: PoolRun) -> list[str]:
    """The model of each switch, by its size."""
    weights = run.lowered.models.weight_bytes[run.outcome.switches[:, 3].astype(int)]
    order = dict(zip(sorted(set(run.lowered.models.weight_bytes)), SIZES, strict=False))
    return [order[size] for size in weights.tolist()]


def _quantiles(values: np.ndarray, about: dict[str, str]) -> list[dict[str, Any]]:
    shares = np.linspace(0.0, 1.0, POINTS)
    return [about | {"quantile": float(share), "seconds": float(np.quantile(values, share))} for share in shares]
