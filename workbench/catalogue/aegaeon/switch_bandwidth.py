"""Ablation: how fast weights load, with ideal prefetch and without."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.fig11 import CUT, DRAWN
from workbench.catalogue.aegaeon.pools import METRICS, promise, serve
from workbench.catalogue.aegaeon.sweep import told
from workbench.catalogue.context import Context
from workbench.catalogue.judging import Draft
from workbench.catalogue.monotone import monotone
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.pooling import ByRate
from workbench.results import Verdict

X = "x = switch bandwidth in bytes/s"
WAYS = {"ideal": "attainment with ideal prefetch, ", "off": "attainment without prefetch, "}
OWN = "on"
RATES = (8e9, 16e9, 20e9, 32e9, 40e9, 64e9)
QUICK = (8e9, 16e9, 40e9)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["curve"].filter(pl.col("backend") == tables["curve"]["backend"][0])
    mean = table.group_by("prefetch", "bytes_per_s").agg(pl.col("qos-artifact").mean()).sort("bytes_per_s")
    parts = []
    for rate in (mean["bytes_per_s"].min(), mean["bytes_per_s"].max()):
        at = dict(mean.filter(pl.col("bytes_per_s") == rate).select("prefetch", "qos-artifact").iter_rows())
        texts = [f"{at[way]:.2f} {words}" for way, words in (("ideal", "with ideal prefetch"), ("off", "without"))
                 if way in at]  # fmt: skip
        parts.append(f"{' and '.join(texts)} at {rate / 1e9:g} GB/s")
    return f"Attainment of {parameters['models']} models is {'; '.join(parts)}."


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["curve"]
    table = table.filter(pl.col("backend") == table["backend"][0])
    gaps = []
    for (_,), part in table.group_by("replication", maintain_order=True):
        wide = part.pivot("prefetch", index="bytes_per_s", values="qos-artifact").sort("bytes_per_s")
        if not {"ideal", "off"} <= set(wide.columns) or len(wide) < 2:
            return []
        ends = wide[[0, len(wide) - 1]]
        gaps.append((ends["ideal"] - ends["off"]).to_list())
    claim = "the gap between ideal prefetch and none shrinks from the slowest link to the fastest"
    return [monotone(draft, claim, gaps, falling=True, blame="one draw of requests at both ends")]


@experiment(
    "aegaeon/switch-bandwidth",
    title="How fast must weights load?",
    question="How does the rate at which weights load change attainment, and how much of it does prefetching hide?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 2.5, "simpy": 5.0},
    draw="pooling_settings.bandwidth",
    say=_say,
    stochastic=True,
    matches=(
        Match(note=DRAWN, assumptions=(CUT, Assumption("steps as on an H100, 16 GB/s for KV", {"variant": "paper"}))),
    ),
    judges=(_judge,),
    agrees=(
        Agree("attainment, share of time", "curve", ("prefetch", "bytes_per_s"), "qos-artifact",
              {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def switch_bandwidth(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    variant: Annotated[
        str,
        Par("Run as in the", choices=pools.VARIANTS, status="published", source="the rerun is of the simulator"),
    ] = "simulator",
    arrivals: pools.Arrivals = "artifact",
    models: Annotated[int, Par("Models", low=4, high=128, source="64 in the rerun")] = 64,
    rate_per_s: Annotated[
        float, Par("Requests of a model", "1/s", low=0.01, high=1, log=True, source="0.1 in the rerun")
    ] = 0.1,
) -> dict[str, pl.DataFrame]:
    """Attainment by four definitions against the rate of loading: ideal prefetch, none, and that of Algorithm 2.

    *on* loads the next model of the round from the moment of a switch on, as the real system does.
    """
    rates = (16e9,) if context.backend == "simpy" else QUICK if context.mode == "quick" else RATES
    rows = []
    for prefetch in ("ideal",) if context.backend == "simpy" else (*WAYS, OWN):
        for rate in rates:
            context.tell(f"prefetch {prefetch}, {rate / 1e9:g} GB/s")
            run = serve(
                context, models, rate_per_s, 120.0, cluster=cluster, variant=variant, generator=arrivals,
                prefetch=prefetch, switch=ByRate(bytes_per_s=rate),
            )  # fmt: skip
            rows.append({"prefetch": prefetch, "bytes_per_s": rate, **run.attainment(promise())})
    known = [(WAYS[row["prefetch"]] + X, row["bytes_per_s"], row["qos-artifact"], "1")
             for row in rows if row["prefetch"] in WAYS]  # fmt: skip
    known += [(f"attainment with the prefetch of the real system, {X}", row["bytes_per_s"], row["qos-artifact"], "1")
              for row in rows if row["prefetch"] == OWN]  # fmt: skip
    return {"curve": pl.DataFrame(rows).select("prefetch", "bytes_per_s", *METRICS), "headline": told(known)}
