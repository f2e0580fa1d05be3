"""Figures 15 and 16: the slots of an overloaded instance and of a new one that receives its layers meanwhile."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.live_real import judge_identity, real_pairs
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.profiles import model
from workbench.scaling.model.layer_program import layer_program, work_sum
from workbench.scaling.model.live_pair import MOST_PLANS, LivePair, Shared, best_shares, share_batches
from workbench.scaling.simulated.live_pair import simulate

ALONE, BEST_EFFORT, STEPS = "old instance alone", "best-effort", "two-step picture of the text"
ZIGZAG, UNTOUCHED, PROGRAM, OPTIMUM = "ILP-free ZigZag", "ZigZag, untouched too", "amended ILP", "exact optimum"
RULES = {
    ALONE: {"schedule": "alone"},
    BEST_EFFORT: {"schedule": "best-effort"},
    ZIGZAG: {"schedule": "zigzag"},
    UNTOUCHED: {"schedule": "zigzag", "untouched": True},
}
FINISH, MOVED = "finish time of batch x", "layers of batch x run on the new instance"
MEAN, SUM, LATENCY = "mean finish time of the first six batches", "sum of finish times", "latency of request {} in the "
REAL = (BEST_EFFORT, STEPS, ZIGZAG)
"""What real processes run; a quick run leaves the middle one out."""

SHOWN = (ALONE, BEST_EFFORT, STEPS, ZIGZAG, UNTOUCHED, PROGRAM, OPTIMUM)
RATIO = "load time of a layer over its compute time, 2000 tokens, {} Gbps"
PREFILL = {
    "Llama2-7B": ("llama-2-7b", 1, None),
    "Llama3-8B": ("llama-3-8b", 1, 15_000),
    "Mistral-24B, TP2": ("mistral-small-24b", 2, 12_000),
    "Qwen2.5-72B, TP4": ("qwen2.5-72b", 4, 5_300),
}
"""Model, TP and prefill tokens/s of an instance in the artifact's configurations (notes on BlitzScale, §4); None is
the parameter."""
_PAPER = "OSDI'25 paper §5.2, Fig 15"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["batches"].filter(pl.col("backend") == tables["batches"]["backend"][0])
    mean = {name: part["finish_layers"].mean() for (name,), part in table.group_by("rule")}
    text = (
        f"Batches are done after {mean[ZIGZAG]:.3g} layer times on average under ZigZag, {mean[BEST_EFFORT]:.3g} under"
    )
    text += f" best effort and {mean[ALONE]:.3g} on the old instance alone." if ALONE in mean else " best effort."
    if (checked := tables.get("identity")) is not None:
        said = "no token is another" if not any(checked["fault"]) else "some tokens are others"
        text += f" Real processes that split batches that way say what one model says: {said}."
    return text


@experiment(
    "blitzscale/fig15",
    title="ZigZag: two instances share batches while layers arrive",
    question="How much sooner are queued batches done when a half-loaded instance runs their first layers?",
    backends=("analytic", "simpy", "torch"),
    seconds={"analytic": 0.3, "simpy": 0.6, "torch": 25},
    draw="live.slots",
    panels=("slots", "finish"),
    say=_say,
    matches=(
        Match(
            series=("latency of request 7 in the paper's example, in layer times",),
            note="the sixth batch, counted from its own start on the new instance, is the one that fits the text",
            fitted=("best-effort", "ZigZag"),
        ),
        Match(
            series=("load time of a layer over its compute time, called typical",),
            note="2,000 tokens at the accelerator's peak rate, or 100 Gbps, give about 6",
            assumptions=(Assumption("Llama2-7B prefills as fast as the artifact says", {"tokens_per_s": 23_200.0}),),
        ),
        Match(
            series=("time to solve the ILP",),
            incomparable={"Llama3-8B": "the wall time of a solver is a property of the machine; benchmarks print ours"},
        ),
        Match(series=tuple(RATIO.format(gbps) for gbps in (100, 200)), tolerance=0.02),
    ),
    agrees=(
        Agree(
            "finish time of each batch",
            "batches",
            ("rule", "batch"),
            "finish_layers",
            {("analytic", "simpy"): (-1e-12, 1e-12), ("analytic", "torch"): (-0.02, 0.10)},
        ),
    ),
    judges=(judge_identity,),
)
def fig15(
    context: Context,
    *,
    batches: Annotated[int, Par("Batches that wait", low=1, high=60, status="published", source=_PAPER)] = 7,
    layers: Annotated[int, Par("Layers", low=1, high=100, status="published", source=_PAPER)] = 7,
    load_layers: Annotated[
        float, Par("Load time of a layer, in layer times", low=0, high=40, step=0.5, status="published", source=_PAPER)
    ] = 6.0,
    gap_layers: Annotated[
        float, Par("Time between arrivals, in layer times", low=0, high=40, step=0.5, source="0: all wait at the start")
    ] = 0.0,
    hand_over_layers: Annotated[
        float,
        Par(
            "Hand-over of an activation, in layer times",
            low=0,
            high=2,
            step=0.05,
            source="0: the paper's program ignores it; 2000 tokens at 100 Gbps take 0.3 to 0.55",
        ),
    ] = 0.0,
    tokens_per_s: Annotated[
        float,
        Par(
            "Prefill rate of Llama2-7B",
            "1/s",
            low=1e3,
            high=1e5,
            log=True,
            status="published",
            source="artifact's configuration",
        ),
    ] = 13_000.0,
    rule: Annotated[str, Par("Show the slots of", choices=SHOWN, free=True)] = ZIGZAG,
) -> dict[str, pl.DataFrame]:
    """Slots of both instances and finish times of all batches under each rule, in units of the time of one layer.

    Real run: a Llama-shaped model of small layers, each computed and then held for the time of a layer of Llama2-7B,
    2,000 tokens at its prefill rate, times θ; its weights come layer by layer over a paced link, activations and caches
    really move, and what follows is laid beside the undisturbed model.
    """
    run = simulate if context.backend == "simpy" else share_batches
    given = {
        "layers": layers,
        "load_s": load_layers,
        "arrival_s": tuple(gap_layers * i for i in range(batches)),
        "hand_s": hand_over_layers,
    }
    two_steps = (min(1, layers), *[min(2, layers)] * (batches - 1))
    if context.backend == "torch":
        return _real(context, given, two_steps, tokens_per_s, rule)
    found = {name: run(LivePair(**given, **how)) for name, how in RULES.items()}
    first = min(1, layers)
    found[STEPS] = _planned(run, given, two_steps)
    plan = layer_program(batches, layers, load_layers, first=first)
    if plan is not None:
        found[PROGRAM] = _planned(run, given, plan)
    if (layers + 1) ** batches <= MOST_PLANS // 3 and context.backend == "analytic":
        found[OPTIMUM] = best_shares(LivePair(**given))[1]
    names = [name for name in SHOWN if name in found]
    table = pl.concat([_batches(name, found[name]) for name in names])
    slots = _slots(rule, {name: shared.slots for name, shared in found.items()})
    known = [*_example(), *_ratios(tokens_per_s)] if context.backend == "analytic" else []
    if (batches, layers, load_layers, gap_layers, hand_over_layers) == (7, 7, 6.0, 0.0, 0.0):
        known += _figure(found, plan)
    return {"batches": table, "slots": slots, "headline": headline(known)}


def _real(
    context: Context, given: dict[str, Any], two_steps: tuple[int, ...], tokens_per_s: float, rule: str
) -> dict[str, pl.DataFrame]:
    """The same by real processes, in layer times."""
    how = {**RULES, STEPS: {"schedule": "planned", "plan": two_steps}}
    found, tables = {}, []
    with real_pairs(context, given["layers"], tokens_per_s) as real:
        for name in REAL if context.mode == "full" else (BEST_EFFORT, ZIGZAG):
            made = real.run(name, LivePair(**given, **how[name]))
            found[name] = made.slots
            shared = Shared(np.array(made.finish_s()), made.batches["moved"].to_numpy(), made.slots)
            tables.append(_batches(name, shared))
    return {
        "batches": pl.concat(tables),
        "slots": _slots(rule, found),
        "identity": pl.DataFrame(real.identity),
        "headline": headline([]),
    }


def _slots(rule: str, found: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The steps under one rule, ZigZag where nobody ran that one."""
    shown = rule if rule in found else ZIGZAG
    return found[shown].select(
        pl.lit(shown).alias("rule"),
        "instance",
        pl.col("batch") + 1,
        start_layers=pl.col("start_s"),
        end_layers=pl.col("end_s"),
    )


def _planned(run, given: dict[str, Any], plan: tuple[int, ...]) -> Shared:
    return run(LivePair(**given, schedule="planned", plan=plan))


def _batches(name: str, shared: Shared) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "rule": [name] * shared.moved.size,
            "batch": np.arange(1, shared.moved.size + 1),
            "finish_layers": shared.finish_s,
            "moved_layers": shared.moved,
        }
    )


def _figure(found: Mapping[str, Shared], plan: tuple[int, ...] | None) -> list[tuple[str, Any, float, str]]:
    """The rows of the paper's own example."""
    rows: list[tuple[str, Any, float, str]] = []
    for name in (ALONE, BEST_EFFORT, STEPS, ZIGZAG):
        shared = found[name]
        rows += [(f"{FINISH}, {name}", i, value, "1") for i, value in enumerate(shared.finish_s, start=1)]
        rows += [(f"{MOVED}, {name}", i, value, "1") for i, value in enumerate(shared.moved, start=1)]
        rows.append((f"{MEAN}, {name}", "", shared.finish_s[:6].mean(), "1"))
    about = "7 batches, 7 layers, load time 6"
    rows += [(f"{SUM}, {name}", about, found[name].finish_s.sum(), "1") for name in (BEST_EFFORT, ZIGZAG)]
    text = LATENCY + "paper's example, in layer times"
    rows.append((text.format(3), "ZigZag", found[ZIGZAG].finish_s[2], "1"))
    # The sixth batch, from its own start on the new instance.
    for name, shared in (("best-effort", found[BEST_EFFORT]), ("ZigZag", found[ZIGZAG])):
        start = shared.slots.filter(batch=5, instance="new")["start_s"].min()
        rows.append((text.format(7), name, shared.finish_s[5] - start, "1"))
    return rows


@functools.cache
def _example() -> tuple[tuple[str, Any, float, str], ...]:
    """What the notes compute beside the figure, whatever the controls say: other sizes, and the integer program."""
    run = share_batches
    rows: list[tuple[str, Any, float, str]] = []
    for n, top, load in ((6, 7, 6), (5, 7, 6), (5, 8, 12), (5, 6, 4), (5, 8, 2)):
        about = f"{n} batches, {top} layers, load time {load}"
        pair = {"layers": top, "load_s": float(load), "arrival_s": (0.0,) * n}
        zigzag = run(LivePair(**pair)).finish_s.sum()
        best = best_shares(LivePair(**pair))[1].finish_s.sum()
        rows += [(f"{SUM}, {ZIGZAG}", about, zigzag, "1"), (f"{SUM}, {OPTIMUM}", about, best, "1")]
        rows.append((f"{SUM}, {ZIGZAG} over {OPTIMUM}", about, zigzag / best, "1"))
        free = run(LivePair(**pair, untouched=True)).finish_s.sum()
        rows.append((f"{SUM}, ZigZag that may also take untouched requests", about, free, "1"))
    for n in (5, 6, 7):
        feasible = sum(layer_program(n, 7, 6.0, "printed", first) is not None for first in range(8))
        rows.append(("feasible solutions of the ILP as printed", f"{n} batches, 7 layers, load time 6", feasible, "1"))
    six = layer_program(6, 7, 6.0)
    words = "ILP with the amended third constraint, six batches"
    rows += [(f"{MOVED}, {words}", i, moved, "1") for i, moved in enumerate(six, start=1)]
    about = "sum of the prefix sums of layers left to the old instance"
    rows.append((f"{about}, {PROGRAM}", "six batches", work_sum(six, 7), "1"))
    zigzag = run(LivePair(layers=7, load_s=6.0, arrival_s=(0.0,) * 6)).moved
    rows.append((f"{about}, {ZIGZAG}", "six batches", work_sum(tuple(zigzag.tolist()), 7), "1"))
    # Seven batches have several optima; the notes' one is run here, after a check that it is one.
    seven = (1, 4, 4, 3, 4, 3, 4)
    if work_sum(seven, 7) == work_sum(layer_program(7, 7, 6.0), 7):
        replayed = run(LivePair(layers=7, load_s=6.0, arrival_s=(0.0,) * 7, schedule="planned", plan=seven))
        words = words.replace("six", "seven")
        rows += [(f"{MOVED}, {words}", i, moved, "1") for i, moved in enumerate(seven, start=1)]
        text = "real finish time of batch x under the amended ILP, seven batches"
        rows += [(text, i, value, "1") for i, value in enumerate(replayed.finish_s, start=1)]
        rows.append((f"{SUM}, {PROGRAM}", "7 batches, 7 layers, load time 6", replayed.finish_s.sum(), "1"))
    return tuple(rows)


def _ratios(llama2_tokens_per_s: float) -> list[tuple[str, Any, float, str]]:
    """Seconds that a layer takes over the network, over seconds that it takes to prefill 2,000 tokens."""
    rows: list[tuple[str, Any, float, str]] = []
    for name, (key, tp, tokens_per_s) in PREFILL.items():
        shape = model(key)
        compute_s = 2000 / (tokens_per_s or llama2_tokens_per_s) / shape.layers
        for gbps in (100, 200):
            load_s = shape.layer_bytes / tp / (gbps * 1e9 / 8)
            rows.append((RATIO.format(gbps), name, load_s / compute_s, "1"))
            if (name, gbps) == ("Llama2-7B", 200):
                about = "load time of a layer over its compute time, called typical"
                rows.append((about, "Llama2-7B, 2000 tokens, 200 Gbps", load_s / compute_s, "1"))
    return rows
