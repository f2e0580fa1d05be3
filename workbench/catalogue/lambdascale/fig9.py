"""Figure 9: first tokens of 50 batches at fixed rates, by four systems and for three models."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.lambdascale.replaying import Rules, batches, run_on, waits_s
from workbench.catalogue.lambdascale.systems import (
    LAMBDASCALE,
    RECORDED,
    RING,
    SERVERLESSLLM,
    SYSTEMS,
    LargeCluster,
    LargeNodes,
    NcclTime,
    Nodes,
    Overhead,
    SmallCluster,
    TreeRate,
    World,
    world,
)
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.results import Reading, Verdict

RATES = {"7B": (2.0, 4.0, 6.0, 8.0, 10.0), "13B": (1.0, 2.0, 3.0, 4.0, 5.0), "70B": (0.5, 1.0, 1.5, 2.0, 2.5)}
"""Of panels a to c; the axis could not be read. 6, 3 and 1.5 are those of panels d to f."""

PANELS = {"7B": 6.0, "13B": 3.0, "70B": 1.5}
STARTED = "all of 50 requests started by, FaaScale"
RATIO = "largest TTFT, {} over FaaScale"
TAIL = 2.0
"""ServerlessLLM's tail is far longer than another's if its largest wait is so many times as long."""

_TICK = Assumption("decisions come every second, as in the artifact without host memory", {"tick_s": 0.5})
_STEPS = Assumption("a step of FaaSNet is as short as its records say, without overhead", {"tree_rate": 0.83})
_LARGE = Assumption(
    "70B runs on the 6 nodes that 24 GPUs make, so that waits are for nodes, not for weights", {"large_nodes": 16}
)
_RING = Assumption("NCCL takes the recorded time of groups made on the way, not its ring's", {"nccl": RING})


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["waits"]
    table = table.filter(
        (pl.col("backend") == table["backend"][0])
        & (pl.col("model") == "13B")
        & (pl.col("rate_per_s") == PANELS["13B"])
    )
    parts = ", ".join(f"{row['system']} {row['max_s']:.2f} s" for row in table.to_dicts())
    count = parameters["requests"]
    return f"13B at {PANELS['13B']:g} batches/s: the last of {count} to start has waited {parts}."


def _judge(draft: Draft) -> list[Verdict]:
    return [
        _order(draft, "FaaScale's mean TTFT is the lowest at every rate", "at every rate", _lowest, _STEPS),
        _order(
            draft,
            "the longest wait of ServerlessLLM is far longer than that of all others (d to f)",
            f"at least {TAIL:g} times the next",
            _tails,
            _LARGE,
        ),
    ]


def _lowest(table: pl.DataFrame) -> tuple[str, bool]:
    """At how many rates FaaScale has the lowest mean, and where not."""
    found = {
        f"{name} at {rate:g}": part.sort("mean_s")["system"][0] == LAMBDASCALE
        for (name, rate), part in table.group_by("model", "rate_per_s", maintain_order=True)
    }
    missed = [place for place, held in found.items() if not held]
    text = f"at {len(found) - len(missed)} of {len(found)}"
    return text + (f", not for {', '.join(missed)}" if missed else ""), not missed


def _tails(table: pl.DataFrame) -> tuple[str, bool]:
    """ServerlessLLM's longest wait over the next longest, at the rates of panels d to f."""
    ratios = []
    for label, rate in PANELS.items():
        part = table.filter((pl.col("model") == label) & (pl.col("rate_per_s") == rate))
        ends = dict(part.select("system", "max_s").iter_rows())
        ratios.append(ends.pop(SERVERLESSLLM) / max(ends.values()))
    text = ", ".join(f"{label} {ratio:.2g}" for label, ratio in zip(PANELS, ratios, strict=True))
    return f"{text} times", min(ratios) >= TAIL


def _order(
    draft: Draft, claim: str, published: str, measure: Callable[[pl.DataFrame], tuple[str, bool]], blame: Assumption
) -> Verdict:
    table = draft.tables["waits"]
    ours, held = measure(table.filter(pl.col("backend") == table["backend"][0]))
    reading: Reading = "reproduced" if held else "differs"
    reason = "read off our table of waits"
    if not draft.comparable:
        reading, reason = "not comparable", draft.reason
    elif not held:
        change = ", ".join(f"{name} = {value}" for name, value in blame.change.items())
        moved, now = measure(draft.rerun(blame.change)["waits"])
        reason = f"Assumed here: {blame.text}; with {change} it is {moved}, {'as' if now else 'still not as'} published"
    return Verdict(
        claim=claim, published=published, ours=ours, strength="ordering", verdict=reading, reason=reason,
        mode=draft.mode, seeds=draft.seeds,
    )  # fmt: skip


@experiment(
    "lambdascale/fig9",
    title="First tokens at fixed rates",
    question="How long do 50 batches wait for their first tokens while the cluster scales out from one replica?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 1.0, "simpy": 15.0},
    draw="replayed.fixed_rates",
    panels=("rates 7B", "rates 13B", "rates 70B", "waits 7B", "waits 13B", "waits 70B"),
    say=_say,
    matches=(
        Match((STARTED,), tolerance=0.1, assumptions=(_TICK,)),
        Match((RATIO.format("NCCL"),), assumptions=(_TICK, _RING)),
        Match(assumptions=(_TICK,)),
    ),
    judges=(_judge,),
    agrees=(
        Agree("longest wait", "waits", ("model", "system", "rate_per_s"), "max_s", {("compiled", "simpy"): (0.0, 0.0)}),
    ),
)
def fig9(
    context: Context,
    *,
    cluster: SmallCluster = "lambdascale-testbed1",
    large_cluster: LargeCluster = "lambdascale-testbed2",
    nodes: Nodes = 12,
    large_nodes: LargeNodes = 6,
    replicas: Annotated[
        int, Par("Replicas at first", low=1, high=8, status="inferred", source="MLSys'26 paper, caption of Fig 8: one")
    ] = 1,
    requests: Annotated[
        int, Par("Batches", low=5, high=500, status="published", source="MLSys'26 paper §7.3: 50 requests")
    ] = 50,
    tick_s: Annotated[
        float,
        Par(
            "Between two decisions",
            "s",
            low=0.05,
            high=5.0,
            step=0.05,
            status="published",
            source="artifact controller.py: 1 s, 0.5 s for 7B and 13B with host memory",
        ),
    ] = 1.0,
    at_once: Annotated[
        bool,
        Par("All batches come when the scale-out begins", source="the artifact has this mode of fixed scaling too"),
    ] = False,
    overhead_s: Overhead = 0.002,
    nccl: NcclTime = RECORDED,
    tree_rate: TreeRate = 1.0,
) -> dict[str, pl.DataFrame]:
    """Mean, P90 and largest wait for first tokens by rate, and every wait at 6, 3 and 1.5 batches a second.

    Each batch of 4 prompts makes 64 tokens each, alone on its node or pinned to a lane of a pipeline. No host memory:
    ServerlessLLM reads SSDs, the others send from the replica.
    """
    found, curves, known = [], [], []
    for one in _worlds(context, cluster, large_cluster, nodes, large_nodes, nccl, tree_rate):
        rules = Rules(min(replicas, one.nodes - 1), tick_s, None, overhead_s)
        for rate in RATES[one.label]:
            if context.backend == "simpy" and context.mode == "quick" and rate != PANELS[one.label]:
                continue
            arrival = np.full(requests, tick_s) if at_once else np.arange(requests) / rate
            for system in SYSTEMS:
                context.tell(f"{one.label}, {system} at {rate:g} a second")
                waits = waits_s(run_on(context, one, system, rules, batches(arrival)))
                about = {"model": one.label, "system": system, "rate_per_s": rate}
                found.append(about | _summary(waits))
                if rate == PANELS[one.label]:
                    curves.append(
                        pl.DataFrame(
                            {**about, "share": np.arange(1, waits.size + 1) / waits.size, "wait_s": np.sort(waits)}
                        )
                    )
    waits = pl.DataFrame(found)
    at = dict(
        waits.filter((pl.col("model") == "13B") & (pl.col("rate_per_s") == PANELS["13B"]))
        .select("system", "max_s")
        .iter_rows()
    )
    known.append((STARTED, "panels d-f", at[LAMBDASCALE], "s"))
    known += [(RATIO.format(system), "13B", at[system] / at[LAMBDASCALE], "1") for system in SYSTEMS[1:]]
    named = waits.with_columns(series=pl.format("first tokens, mean wait, {} {}", "system", "model"))
    known += curve_rows(named, "series", "rate_per_s", "mean_s", "s")
    return {"waits": waits, "cdf": pl.concat(curves), "headline": headline(known)}


def _worlds(
    context: Context, cluster: str, large_cluster: str, nodes: int, large_nodes: int, nccl: str, tree_rate: float
) -> list[World]:
    small = [world(context, label, cluster, nodes, nccl, tree_rate) for label in ("7B", "13B")]
    return [*small, world(context, "70B", large_cluster, large_nodes, nccl, tree_rate)]


def _summary(waits: np.ndarray) -> dict[str, float]:
    return {"mean_s": float(waits.mean()), "p90_s": float(np.quantile(waits, 0.9)), "max_s": float(waits.max())}
