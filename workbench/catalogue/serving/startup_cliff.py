"""How many promises survive, by the seconds an instance takes to start, and what those seconds are made of."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.serving.bursts import burst, case, kept, run_case
from workbench.catalogue.serving.common import Cluster, Least, Load, Replayed, Served, Tbt, Tp, Ttft, Window
from workbench.catalogue.spec import Agree, experiment
from workbench.errors import InputError
from workbench.serving.model import pool_on, weights_on
from workbench.transfer.model import Hockney, completion

STARTS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
TARGETS = 4
"""Instances that start at once on the network path."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    parts = []
    if "starts" in tables:
        starts = tables["starts"].sort("seconds").to_dicts()
        first, last = starts[0], starts[-1]
        parts.append(
            f"A start takes {first['seconds']:.3g} s by {first['way']} and {last['seconds']:.3g} s by {last['way']}"
        )
    if "kept" in tables:
        table = tables["kept"].filter(pl.col("backend") == tables["kept"]["backend"][0]).sort("start_s")
        low, high = table.row(0, named=True), table.row(-1, named=True)
        parts.append(
            f"{low['both_kept']:.0%} of requests keep both promises where a start takes {low['start_s']:g} s, and "
            f"{high['both_kept']:.0%} where it takes {high['start_s']:g} s"
        )
    return f"{'; '.join(parts)}."


@experiment(
    "serving/startup-cliff",
    title="Where is the start-up cliff?",
    question="How many requests keep their promise by the seconds an instance takes to start, and what do bytes and "
    "bandwidth make of those?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.02, "compiled": 2.0, "simpy": 45.0},
    draw="scaling.start_up",
    panels=("cliff", "starts"),
    say=_say,
    agrees=(Agree("requests that keep both", "kept", ("start_s",), "both_kept", {("compiled", "simpy"): (0, 0)}),),
)
def startup_cliff(
    context: Context,
    *,
    cluster: Cluster = "blitzscale-a",
    model: Served = "llama-3-8b",
    tp: Tp = 1,
    trace: Replayed = "azure-code-2023",
    window_s: Window = 600.0,
    load: Load = 0.3,
    least: Least = 2,
    ttft_s: Ttft = 0.45,
    tbt_s: Tbt = 0.15,
    tick_s: Annotated[
        float,
        Par("Between two decisions", "s", low=0.05, high=30, log=True, source="chosen; 30 s is common in Kubernetes"),
    ] = 0.1,
    engine_s: Annotated[
        float,
        Par(
            "Engine and warm-up",
            "s",
            low=0,
            high=60,
            step=0.1,
            status="published",
            source="OSDI'25 paper, appendix A.1: a CUDA context takes 0.5 s, and pooled ones nothing",
        ),
    ] = 0.5,
) -> dict[str, pl.DataFrame]:
    """Share of requests that keep TTFT and TPOT, by start-up; seconds of a start by path of the weights.

    A start is the engine, then the weights: bytes over the achievable rate from SSD, from the host's memory, and over a
    chain of network cards from one instance to four new ones. Instances come by the rule of BlitzScale's artifact.
    """  # fmt: skip
    if context.backend == "analytic":
        return _starts(context, cluster, model, tp, engine_s)
    one = case(context, cluster, model, tp, (ttft_s, tbt_s), burst(context, trace, window_s), load, least)
    rows = []
    for start_s in _few(context):
        context.tell(f"start-up of {start_s:g} s")
        rows.append({"start_s": start_s, **kept(run_case(context, one, start_s, tick_s=tick_s), one.slo)})
    table = pl.DataFrame(rows)
    named = table.with_columns(series=pl.lit("requests that keep both promises"))
    return {"kept": table, "headline": headline(curve_rows(named, "series", "start_s", "both_kept", "1"))}


def _few(context: Context) -> tuple[float, ...]:
    if context.backend == "simpy":
        return (0.5, 5.0) if context.mode == "quick" else (0.5, 10.0, 50.0)
    return STARTS_S[::3] if context.mode == "quick" else STARTS_S


def _starts(context: Context, cluster: str, model: str, tp: int, engine_s: float) -> dict[str, pl.DataFrame]:
    hosts, shape = context.cluster(cluster), context.model(model)
    rows = []
    pool = pool_on(hosts, tp)
    if pool.ssd_each_bytes_per_s:
        rate = context.cite(
            f"SSD to an instance on {hosts.name}", pool.ssd_each_bytes_per_s, "bytes/s", "computed", "profile"
        )
        rows.append({"way": "SSD, alone on the host", "weights_s": shape.weight_bytes / rate})
    for way, path in (("host memory", "all-cached"), (f"network, chain to {TARGETS}", "multicast")):
        try:
            weights = weights_on(shape, hosts, tp, path)
        except InputError:
            continue  # no source states that link
        if path == "all-cached":
            rate = context.cite(
                "host memory to an instance", weights.dram_bytes_per_s, "bytes/s", "computed", weights.source
            )
            rows.append({"way": way, "weights_s": shape.weight_bytes / rate})
        else:
            sent = weights.multicast
            cost = Hockney(bytes_per_s=sent.bytes_per_s, alpha_s=sent.alpha_s)
            context.cite("network of an instance", sent.bytes_per_s, "bytes/s", "computed", weights.source)
            last = completion("chain", TARGETS + 1, sent.blocks, shape.weight_bytes, cost)["complete_s"].max()
            rows.append({"way": way, "weights_s": float(last)})
    if not rows:
        raise InputError(f"{hosts.name} states no SSD, PCIe or network", "choose another cluster", field="cluster")
    table = (
        pl.DataFrame(rows)
        .with_columns(engine_s=pl.lit(engine_s))
        .with_columns(seconds=pl.col("engine_s") + pl.col("weights_s"))
        .sort("seconds")
    )
    known = [(f"start-up by {row['way']}", "", row["seconds"], "s") for row in table.to_dicts()]
    return {"starts": table, "headline": headline(known)}
