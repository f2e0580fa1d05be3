"""Figure 9: what a new instance is good for while its layers arrive: nothing, its own batch, or half of everybody's."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.live_real import PrefillRate, judge_identity, real_pairs
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.scaling.model.live_pair import LivePair, first_helped_s, share_batches, throughput_gain
from workbench.scaling.simulated.live_pair import simulate

STOP, OVERLAP, LIVE = "stop the world", "overlap (its own batch only)", "live"
WAYS = (STOP, OVERLAP, LIVE)
SOONER = 0.5
"""Layer times by which a batch must be done sooner to count as helped: more than a real clock is off."""

STEADY = 60
"""Batches after which a pair with a fixed split runs steadily; throughput is taken over as many more."""
REAL_STEADY = 5
"""The same for real processes; fewer in a quick run."""

_RATE = "batches finished per layer time, {} layers"
HALF = "throughput over one full instance, half of the layers loaded"
_PAPER = "OSDI'25 paper §4, Fig 9"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    done = tables["done"].filter(pl.col("backend") == tables["done"]["backend"][0])
    loaded = (parameters["layers"] - 1) * parameters["load_layers"]
    count = {way: len(done.filter((pl.col("way") == way) & (pl.col("layer_times") <= loaded))) for way in WAYS}
    text = f"When the last layer arrives, after {loaded:g} layer times, {count[LIVE]} batches are done live"
    if STOP in done["way"]:
        text += f" and {count[STOP]} where the new instance only loads"
    if "identity" in tables:
        real = tables["first"].filter(pl.col("backend") == tables["identity"]["backend"][0]).row(0, named=True)
        if not math.isnan(real["first_helped_layers"]):
            text += f"; real processes have the first batch done sooner {real['margin_layers']:.3g} layer times before"
            text += " the last layer"
    return f"{text}."


@experiment(
    "blitzscale/fig9",
    title="What a half-loaded instance adds",
    question="How much more do two instances do while the second one still receives its layers?",
    backends=("analytic", "simpy", "torch"),
    seconds={"analytic": 0.05, "simpy": 0.5, "torch": 35},
    draw="live.timelines",
    panels=("done", "throughput"),
    say=_say,
    matches=(
        Match(
            series=(HALF,),
            note="the paper's doubling holds when the number of layers is even",
            assumptions=(Assumption("seven layers cannot be halved", {"layers": 8}),),
        ),
    ),
    agrees=(
        Agree(
            "throughput with so many layers loaded",
            "throughput",
            ("loaded",),
            "gain",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.1, 0.1)},
        ),
        Agree(
            "finish times",
            "done",
            ("way", "batch"),
            "layer_times",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.02, 0.10)},
        ),
        Agree(
            "how long before the last layer the first batch is done sooner",
            "first",
            ("way",),
            "margin_layers",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.15, 0.15)},
        ),
    ),
    judges=(judge_identity,),
)
def fig9(
    context: Context,
    *,
    layers: Annotated[int, Par("Layers", low=1, high=100, status="published", source=_PAPER)] = 7,
    load_layers: Annotated[
        float, Par("Load time of a layer, in layer times", low=0, high=40, step=0.5, source="6, as in Fig 15")
    ] = 6.0,
    batches: Annotated[int, Par("Batches that wait", low=1, high=60, source="more than are done during the load")] = 14,
    tokens_per_s: PrefillRate = 13_000.0,
) -> dict[str, pl.DataFrame]:
    """When batches are done in three ways of using the new instance, and throughput by layers loaded.

    Real run, of the live way and of as many fixed splits as help: a layer of the small model stands for one of
    Llama2-7B, 2,000 tokens at its prefill rate; see `blitzscale/fig15`.
    """
    if context.backend == "torch":
        return _real(context, layers, load_layers, batches, tokens_per_s)
    run = simulate if context.backend == "simpy" else share_batches
    loaded_at = (layers - 1) * load_layers
    live = run(LivePair(layers=layers, load_s=load_layers, arrival_s=(0.0,) * batches)).finish_s
    ways = {
        STOP: _two_instances(batches, layers, 0.0, loaded_at, None),
        OVERLAP: _two_instances(batches, layers, 0.0, loaded_at, max(loaded_at + 1.0, float(layers))),
        LIVE: np.sort(live).tolist(),
    }
    done = pl.DataFrame(
        [
            {"way": way, "batch": i, "layer_times": float(value)}
            for way in WAYS
            for i, value in enumerate(ways[way], start=1)
        ]
    )
    loaded = np.arange(layers + 1)
    gains = throughput_gain(layers, loaded) if context.backend == "analytic" else _measured(run, layers)
    known = []
    if context.backend == "analytic" or layers < 20:
        about = _RATE.format(layers)
        known = [
            (about, f"{k} layer{'' if k == 1 else 's'} loaded", gains[k] / layers, "1") for k in (0, 1) if k <= layers
        ]
        half = gains[-(-layers // 2)] if layers > 1 else gains[0]
        known += [(HALF, "7 layers, as claimed", half, "1")]
        known += [(HALF, "7 layers, computed", half, "1")] if layers == 7 else []
    return {
        "done": done,
        "first": _first(np.array(live), layers, loaded_at),
        "throughput": pl.DataFrame({"loaded": loaded, "gain": np.asarray(gains, float)}),
        "headline": headline(known),
    }


def _first(finish: np.ndarray, layers: int, loaded_at: float) -> pl.DataFrame:
    """When the first batch is done sooner than on the old instance alone, and how long before the last layer."""
    helped = first_helped_s(finish.tolist(), (layers * np.arange(1.0, finish.size + 1)).tolist(), SOONER)
    return pl.DataFrame(
        {
            "way": [LIVE],
            "first_helped_layers": [helped],
            "loaded_layers": [loaded_at],
            "margin_layers": [loaded_at - helped],
        }
    )


def _real(
    context: Context, layers: int, load_layers: float, batches: int, tokens_per_s: float
) -> dict[str, pl.DataFrame]:
    """The live way, and fixed splits of 0 to half of the layers, by real processes."""
    steady = REAL_STEADY if context.mode == "full" else 2
    splits = range(layers // 2 + 1) if context.mode == "full" else {0, layers // 2}
    with real_pairs(context, layers, tokens_per_s) as real:
        run = real.run("live", LivePair(layers=layers, load_s=load_layers, arrival_s=(0.0,) * batches))
        gains = []
        for loaded in sorted(splits):
            finish = np.sort(real.run(f"split at {loaded}", _fixed(layers, loaded, 2 * steady)).finish_s())
            gains.append({"loaded": loaded, "gain": layers * steady / float(finish[-1] - finish[steady - 1])})
    finish = np.array(run.finish_s())
    loaded_at = run.complete_s(run.asked.tails[0]) if load_layers else 0.0
    return {
        "done": pl.DataFrame({"way": [LIVE] * batches, "batch": range(1, batches + 1), "layer_times": np.sort(finish)}),
        "first": _first(finish, layers, loaded_at),
        "throughput": pl.DataFrame(gains),
        "identity": pl.DataFrame(real.identity),
        "headline": headline([]),
    }


def _fixed(layers: int, loaded: int, batches: int) -> LivePair:
    """A pair with so many layers on the new instance that never become more."""
    return LivePair(
        layers=layers,
        load_s=0.0,
        arrival_s=(0.0,) * batches,
        schedule="planned",
        plan=(min(loaded, layers // 2),) * batches,
    )


def _two_instances(batches: int, layers: int, old_s: float, new_s: float, first_of_new: float | None) -> list[float]:
    """Finish times of batches that two whole instances take in turn from one queue.

    Parameters:
        old_s, new_s: when each is free for the first time.
        first_of_new: when the new one is done with a batch that it took at the start, None where it took none.
    """
    free = {"old": old_s, "new": new_s}
    done = []
    if first_of_new is not None and batches > 1:
        done.append(first_of_new)
        free["new"] = first_of_new
    while len(done) < batches:
        name = min(free, key=lambda name: (free[name], name != "old"))
        free[name] += layers
        done.append(free[name])
    return sorted(done)


def _measured(run, layers: int) -> list[float]:
    """Throughput of a pair over that of one instance, by running it with so many layers that never become more."""
    gains = []
    for loaded in range(layers):
        finish = run(_fixed(layers, loaded, 2 * STEADY)).finish_s
        gains.append(layers * STEADY / (finish[-1] - finish[STEADY - 1]))
    whole = _two_instances(2 * STEADY, layers, 0.0, 0.0, None)
    return [*gains, layers * STEADY / (whole[-1] - whole[STEADY - 1])]
