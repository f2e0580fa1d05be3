"""What hurts more: noticing late that instances are short, or loading them slowly?"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.serving.bursts import burst, case, kept, run_case
from workbench.catalogue.serving.common import Cluster, Least, Load, Replayed, Served, Tbt, Tp, Ttft, Window
from workbench.catalogue.spec import Agree, experiment

TICK_S = 0.1
SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SERIES = "requests that keep both promises, loading x s"


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["kept"].filter(pl.col("backend") == tables["kept"]["backend"][0])
    short, long = table["load_s"].min(), table["load_s"].max()

    def share(detect_s: float, load_s: float) -> float:
        return table.filter((pl.col("detect_s") == detect_s) & (pl.col("load_s") == load_s))["both_kept"][0]

    return (
        f"Both at {short:g} s: {share(short, short):.0%} keep their promises; with loading at {long:g} s "
        f"{share(short, long):.0%}, with detection at {long:g} s {share(long, short):.0%}."
    )


@experiment(
    "serving/detection",
    title="Is it detection or loading?",
    question="How many requests keep their promise by delay of detection and seconds of loading, and where does "
    "detection dominate?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 9.0, "simpy": 60.0},
    draw="scaling.detection",
    panels=("grid", "along"),
    say=_say,
    agrees=(
        Agree("requests that keep both", "kept", ("detect_s", "load_s"), "both_kept", {("compiled", "simpy"): (0, 0)}),
    ),
)
def detection(
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
) -> dict[str, pl.DataFrame]:
    """Share of requests that keep TTFT and TPOT for pairs of detection delay and load seconds.

    The delay is the age of the load that decisions see, and the time between two of them; decisions stay as frequent,
    so that nothing but their age changes (rare ones would also release instances later).
    """
    one = case(context, cluster, model, tp, (ttft_s, tbt_s), burst(context, trace, window_s), load, least)
    rows = []
    for detect_s in _few(context):
        for load_s in _few(context):
            context.tell(f"detected after {detect_s:g} s, loaded in {load_s:g} s")
            run = run_case(context, one, load_s, tick_s=TICK_S, scrape_s=detect_s - TICK_S)
            rows.append({"detect_s": detect_s, "load_s": load_s, **kept(run, one.slo)})
    table = pl.DataFrame(rows)
    known = [
        (f"{SERIES.replace('x', format(row['load_s'], 'g'))}", row["detect_s"], row["both_kept"], "1")
        for row in table.to_dicts()
    ]
    return {"kept": table, "headline": headline(known)}


def _few(context: Context) -> tuple[float, ...]:
    if context.backend == "simpy":
        return (1.0, 5.0)
    return (0.1, 1.0, 5.0, 30.0) if context.mode == "quick" else SECONDS
