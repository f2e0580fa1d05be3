"""A small cluster under a burst: chains bring the weights, their tails help before anybody is complete."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.live_real import PrefillRate, judge_identity, real_pairs
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.scaling.model.live_pair import LivePair, first_helped_s, share_batches
from workbench.scaling.real.live_outcome import LiveScaleOut
from workbench.scaling.real.live_sharing import PIECES

SOONER = 0.5
"""Layer times by which a batch must be done sooner to count as helped: more than a real clock is off."""

OLD, TAIL, BETWEEN = "old", "tail", "between"
NAMES = {"old": OLD, "new": TAIL, "whole": BETWEEN}
FIRST, LAST, MARGIN = "first useful work", "tail complete", "first useful work before the tail is complete"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["times"]
    one = table.filter(pl.col("backend") == table["backend"][0]).row(0, named=True)
    if math.isnan(one["first_helped_layers"]):
        text = f"No batch is done sooner before the tails are complete, after {one['complete_layers']:.3g} layer times"
    else:
        text = f"The first batch is done sooner after {one['first_helped_layers']:.3g} layer times, and the tails are"
        text += f" complete after {one['complete_layers']:.3g}"
    if (checked := tables.get("identity")) is not None:
        real = table.filter(pl.col("backend") == checked["backend"][0])
        text += f"; {parameters['chains'] * (parameters['targets'] + 1) + 1} real processes"
        if real["margin_layers"].is_nan().any():
            text += " have none either"
        else:
            low, high = real["margin_layers"].min(), real["margin_layers"].max()
            text += f" have {low:.3g} to {high:.3g} layer times between the two"
        text += ", and no token is another" if not any(checked["fault"]) else ", and some tokens are others"
    return f"{text}."


@experiment(
    "blitzscale/live-cluster",
    title="A small cluster under a burst",
    question="How long before a new instance is complete does it do useful work, when chains bring the weights?",
    backends=("analytic", "torch"),
    seconds={"analytic": 0.05, "torch": 12},
    draw="live_cluster.cluster",
    panels=("slots", "done"),
    say=_say,
    agrees=(
        Agree(
            "how long before its tail is complete a chain does useful work",
            "times",
            ("chain",),
            "margin_layers",
            {("analytic", "torch"): (-0.15, 0.15)},
        ),
        Agree(
            "finish of batches before other instances join",
            "done",
            ("chain", "batch"),
            "finish_layers",
            {("analytic", "torch"): (-0.02, 0.10)},
        ),
        Agree(
            "time until each new instance is complete",
            "complete",
            ("chain", "place"),
            "complete_layers",
            {("analytic", "torch"): (-0.02, 0.10)},
        ),
    ),
    judges=(judge_identity,),
)
def live_cluster(
    context: Context,
    *,
    chains: Annotated[int, Par("Chains, each with an overloaded instance", low=1, high=4, source="chosen")] = 2,
    targets: Annotated[int, Par("New instances in a chain", low=1, high=4, source="chosen")] = 2,
    layers: Annotated[int, Par("Layers", low=1, high=32, status="published", source="OSDI'25 paper §5.2, Fig 15")] = 7,
    load_layers: Annotated[
        float,
        Par(
            "Load time of a layer, in layer times",
            low=0.5,
            high=40,
            step=0.5,
            source="3: about Llama2-7B at 200 Gbps; 6 in the paper's example",
        ),
    ] = 3.0,
    batches: Annotated[
        int, Par("Batches that wait at each overloaded instance", low=1, high=40, source="chosen: more than a load")
    ] = 9,
    tokens_per_s: PrefillRate = 13_000.0,
) -> dict[str, pl.DataFrame]:
    """Slots, finish times and completions of every chain, in layer times after the first layer is at the tails.

    One source with a card for each chain; a chain's tail shares batches with an overloaded instance by ZigZag, the
    instances before it forward the weights and serve whole batches once they have all. The formula is that of one pair
    and of a forwarding chain in pieces of an eighth of a layer: it holds until an instance between joins, and batches
    that are done later are not compared. Real run: see `blitzscale/fig15`.
    """
    pair = LivePair(layers=layers, load_s=load_layers, arrival_s=(0.0,) * batches)
    asked = LiveScaleOut(pair=pair, chains=chains, targets=targets)
    shared = share_batches(pair)
    last = (layers - 1) * load_layers
    places = np.arange(1, targets + 1)
    completes = last - (targets - places) * load_layers / PIECES
    joins = completes[0] if targets > 1 else math.inf
    compared = [batch for batch in range(batches) if shared.finish_s[batch] < joins]
    if context.backend == "torch":
        with real_pairs(context, layers, tokens_per_s, asked.nodes) as real:
            run = real.run("cluster", pair, chains=chains, targets=targets)
        finish = [run.finish_s(chain) for chain in range(chains)]
        complete = [[run.complete_s(node) for node in nodes] for nodes in asked.new]
        slots = run.slots.select(
            pl.col("pair") + 1, pl.col("instance").replace_strict(NAMES), pl.col("batch") + 1, "start_s", "end_s"
        )
        checked = {"identity": pl.DataFrame(real.identity)}
    else:
        finish, complete = [shared.finish_s.tolist()] * chains, [completes.tolist()] * chains
        mine = shared.slots.select(pl.col("instance").replace_strict(NAMES), pl.col("batch") + 1, "start_s", "end_s")
        slots = pl.concat(
            [mine.select(pl.lit(chain).cast(pl.Int64).alias("pair"), pl.all()) for chain in range(1, chains + 1)]
        )
        checked = {}
    alone = (layers * np.arange(1.0, batches + 1)).tolist()
    times = []
    for chain in range(chains):
        helped, tail = first_helped_s(finish[chain], alone, SOONER), complete[chain][-1]
        times.append((chain + 1, helped, tail, tail - helped))
    known = []
    if context.backend == "analytic":
        named = zip((FIRST, LAST, MARGIN), times[0][1:], strict=True)
        known = [(name, "", value, "1") for name, value in named if not math.isnan(value)]
    return {
        "times": pl.DataFrame(
            times, schema=["chain", "first_helped_layers", "complete_layers", "margin_layers"], orient="row"
        ),
        "complete": pl.DataFrame(
            [(c + 1, int(p), float(complete[c][p - 1])) for c in range(chains) for p in places],
            schema=["chain", "place", "complete_layers"],
            orient="row",
        ),
        "done": pl.DataFrame(
            [(c + 1, b + 1, float(finish[c][b])) for c in range(chains) for b in compared],
            schema={"chain": pl.Int64, "batch": pl.Int64, "finish_layers": pl.Float64},
            orient="row",
        ),
        "slots": slots.rename({"pair": "chain", "start_s": "start_layers", "end_s": "end_layers"}),
        **checked,
        "headline": headline(known),
    }
