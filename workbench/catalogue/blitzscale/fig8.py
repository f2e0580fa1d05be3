"""Figures 7 and 8: weights that leave a prefill instance share its link with KV, those of a decode instance do not."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.fig8_race import DURING, WEIGHTS, Races, races
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.links import Rate, link_cost
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.results import Verdict
from workbench.scaling.model.interference import SharedLink, interference
from workbench.scaling.simulated.interference import simulate

SAME, OPPOSITE = "same direction", "opposite direction"
SOURCES = {SAME: "prefill instance", OPPOSITE: "decode instance"}
SHARES = (0.0, 0.05, 0.1, 0.157, 0.2, 0.25, 1 / 3, 0.4, 0.5, 0.545, 0.6, 0.7, 0.8)
TAIL = 0.95
LEAST_SAME, MOST_OPPOSITE = 1.2, 1.05
"""What a real run must show (notes on BlitzScale, §7): how much longer a load takes than on an idle link."""

MOST_SHARE = 0.95
"""Of the link that KV takes at most: prefill waits for it beyond."""
_PAPER = "OSDI'25 paper §4, Fig 7 and 8"
SCALE = "scale time, source that also sends KV over source that does not"
_TBT = "tail TBT, source that also sends KV over source that does not"
_THIRD = "KV share of the link that makes the scale time 1.5 times as long"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["loads"].filter(pl.col("backend") == tables["loads"]["backend"][0])
    ratio = dict(zip(table["direction"], table["load_ratio"], strict=True))
    text = f"A load from the prefill instance takes {ratio[SAME]:.3g} times as long as on an idle link,"
    return f"{text} one from a decode instance {ratio[OPPOSITE]:.3g} times ({name_of(parameters['model'])})."


def _judge(draft: Draft) -> list[Verdict]:
    """What counts as reproduced for real flows: notes on BlitzScale, §7, Fig 8."""
    loads = draft.tables["loads"].filter(pl.col("backend").is_in(("torch", "recorded")))
    ratio = dict(loads.select("direction", "load_ratio").iter_rows())
    if not ratio or draft.parameters["busy"] < 0.5:
        return []
    good = ratio[SAME] > LEAST_SAME and ratio[OPPOSITE] <= MOST_OPPOSITE
    return [
        Verdict(
            claim="weights that really share a link with KV: slower in the same direction only",
            published=f"over {LEAST_SAME:g} and at most {MOST_OPPOSITE:g} times as long",
            ours=f"{ratio[SAME]:.3g} and {ratio[OPPOSITE]:.3g} times",
            strength="ordering",
            verdict="reproduced" if good else "differs",
            reason="the bands of the notes on BlitzScale, §7"
            if good
            else "Assumed here: the machine keeps up with both directions of the link at once",
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "blitzscale/fig8",
    title="Weights against KV on one link",
    question="How much longer do loading and serving take when weights leave the instance that also sends KV?",
    backends=("analytic", "simpy", "torch"),
    seconds={"analytic": 0.02, "simpy": 6.0, "torch": 25},
    draw="live.interference",
    panels=("share", "ratios", "race"),
    say=_say,
    matches=(
        Match(
            series=(SCALE, _TBT, "scale time, prefill instance as source over decode instance as source"),
            note="the paper names neither the model nor the load of its drawing",
            assumptions=(Assumption("prefill runs at full speed", {"busy": 0.61}),),
        ),
    ),
    agrees=(
        Agree(
            "time of a load over that on an idle link",
            "loads",
            ("direction",),
            "load_ratio",
            {("analytic", "simpy"): (-0.1, 0.1)},
        ),
        Agree(
            "mean time of a batch's KV during the load over that outside it",
            "loads",
            ("direction",),
            "kv_ratio",
            {("analytic", "simpy"): (-0.2, 0.2)},
        ),
        Agree(
            "load and KV of one and the same draw",
            "race",
            ("direction", "draw", "flow"),
            "seconds",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.1, 0.1)},
        ),
    ),
    judges=(_judge,),
)
def fig8(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster", profile="cluster", status="published", source="OSDI'25 paper Table 1, cluster A")
    ] = "blitzscale-a",
    model: Annotated[
        str,
        Par("Model", profile="model", source="every head has KV of its own: the most traffic of the paper's models"),
    ] = "llama-2-7b",
    tokens_per_s: Annotated[
        float,
        Par(
            "Prefill rate of an instance",
            "1/s",
            low=100,
            high=200_000,
            log=True,
            status="published",
            source="artifact's configuration for Llama2-7B",
        ),
    ] = 13_000.0,
    busy: Annotated[
        float, Par("Share of the time that it prefills", low=0.0, high=1.0, step=0.01, source="chosen")
    ] = 1.0,
    batch_tokens: Annotated[
        int, Par("Prompt tokens of a batch", low=16, high=16_384, status="published", source="OSDI'25 paper §5.2")
    ] = 2000,
    step_s: Annotated[
        float,
        Par(
            "Decoding step",
            "s",
            low=0.001,
            high=0.2,
            step=0.001,
            source="weights over the memory's bandwidth: 13.5 GB at 1.3 TB/s and some KV",
        ),
    ] = 0.012,
    rate: Rate = "nominal",
) -> dict[str, pl.DataFrame]:
    """Seconds of a load and of KV transfers from two sources, and the load's stretch by share of the link.

    The gap between the first two tokens holds the KV transfer and a decoding step; its tail is the 95th percentile.
    `race` has two draws of KV transfers: as the max-min shares of the link give their times, flow by flow, and as real
    processes take that send σ times fewer bytes through a paced way out, piece by piece in turns. The ratios of a real
    run are those of these draws.
    """
    shape = context.model(model)
    cost = link_cost(context, context.cluster(cluster), rate)
    kv_bytes = batch_tokens * shape.kv_bytes_per_token
    batches_per_s = busy * tokens_per_s / batch_tokens
    share = kv_bytes * batches_per_s / cost.bytes_per_s
    if share > MOST_SHARE:
        why = f"the prefill rate asks for {share:.3g} times the link; no more than {MOST_SHARE:.0%} of it is sent"
        batches_per_s *= MOST_SHARE / share
        share = context.cite("KV's share of the link", MOST_SHARE, "1", "chosen", why)
    rows = []
    links = {
        direction: SharedLink(
            bytes_per_s=cost.bytes_per_s,
            weight_bytes=shape.weight_bytes,
            kv_bytes=kv_bytes,
            batches_per_s=batches_per_s,
            same_direction=direction == SAME,
        )
        for direction in (SAME, OPPOSITE)
    }
    raced = races(context, list(links.items()))
    for direction, link in links.items():
        context.tell(direction)
        found = _of_race(raced, direction, link) if context.backend == "torch" else _loaded(context, link, step_s)
        rows.append({"direction": direction, "source": SOURCES[direction]} | found)
    loads = pl.DataFrame(rows)
    curve = pl.DataFrame(
        [{"kv_share": x, "direction": SAME, "load_ratio": 1 / (1 - x)} for x in SHARES]
        + [{"kv_share": x, "direction": OPPOSITE, "load_ratio": 1.0} for x in SHARES]
    )
    same, opposite = rows
    known = [
        (SCALE, SAME, same["load_ratio"], "1"),
        ("scale time with traffic over scale time without", OPPOSITE, opposite["load_ratio"], "1"),
        (
            "scale time, prefill instance as source over decode instance as source",
            "",
            same["load_s"] / opposite["load_s"],
            "1",
        ),
    ]
    if context.backend == "analytic":
        known.append((_THIRD, SAME, 1 - 1 / 1.5, "1"))
    elif context.backend == "simpy" and opposite["tail_gap_s"] > 0:
        known.append((_TBT, SAME, same["tail_gap_s"] / opposite["tail_gap_s"], "1"))
    shares = list(raced.asked.values()) if context.backend == "torch" else [share] * 2
    here = pl.DataFrame({"kv_share": shares, "direction": [SAME, OPPOSITE], "load_ratio": loads["load_ratio"]})
    return {"loads": loads, "share": curve, "here": here, "race": pl.DataFrame(raced.rows), "headline": headline(known)}


def _of_race(raced: Races, direction: str, link: SharedLink) -> dict[str, float | None]:
    """One row of the table of loads, from real races; the tail of few transfers says nothing."""

    def mean(flow: str) -> float:
        found = [row["seconds"] for row in raced.rows if (row["direction"], row["flow"]) == (direction, flow)]
        return float(np.mean(found)) if found else 0.0

    return {
        "load_s": mean(WEIGHTS),
        "load_ratio": mean(WEIGHTS) * link.bytes_per_s / link.weight_bytes,
        "kv_s": mean(DURING),
        "kv_ratio": raced.stretch[direction],
        "tail_gap_s": None,
    }


def _loaded(context: Context, link: SharedLink, step_s: float) -> dict[str, float | None]:
    """One row of the table of loads."""
    if context.backend == "analytic":
        found = interference(link)
        return {
            "load_s": found.load_s,
            "load_ratio": found.load_s / found.load_alone_s,
            "kv_s": found.kv_s,
            "kv_ratio": found.kv_s / found.kv_alone_s if found.kv_alone_s else 1.0,
            "tail_gap_s": None,
        }
    rng = context.random("kv")
    alone_s = link.weight_bytes / link.bytes_per_s
    runs = [simulate(link, rng, 2 * alone_s) for _ in range(10 if context.mode == "quick" else 60)]
    context.check()
    load_s = float(np.mean([run.load_s for run in runs]))
    during, outside = (np.concatenate([getattr(run, name) for run in runs]) for name in ("during_s", "outside_s"))
    measured = during.size > 0 and outside.size > 0
    return {
        "load_s": load_s,
        "load_ratio": load_s / alone_s,
        "kv_s": float(during.mean()) if during.size else 0.0,
        "kv_ratio": float(during.mean() / outside.mean()) if measured else 1.0,
        "tail_gap_s": step_s + (float(np.quantile(during, TAIL)) if during.size else 0.0),
    }
