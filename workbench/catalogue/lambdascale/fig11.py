"""Figure 11: how long batches wait for first tokens on half an hour of BurstGPT, by five systems."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.lambdascale.fig9 import PANELS
from workbench.catalogue.lambdascale.replaying import Rules, batches, run_on, waits_s
from workbench.catalogue.lambdascale.systems import (
    FAASNET,
    LAMBDASCALE,
    NCCL,
    RECORDED,
    RING,
    SERVERLESSLLM,
    SYSTEMS,
    TOKENS,
    LargeCluster,
    LargeNodes,
    NcclTime,
    Nodes,
    Overhead,
    SmallCluster,
    TreeRate,
    World,
)
from workbench.catalogue.lambdascale.trace_replay import (
    ALL,
    KeepInMemory,
    Pinned,
    Reconstructions,
    Senders,
    Settings,
    Tick,
    TickWithMemory,
    Tokens,
    replays,
    worlds,
)
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.results import Reading, Verdict

BETTER = "P90 TTFT, baseline over FaaScale"
PLACE = "BurstGPT, 30 min"
RANGE = (2.4, 5.0)
POINTS = 100
BASELINES = (NCCL, FAASNET, SERVERLESSLLM)

_LARGE = Assumption("70B runs on the 6 nodes that 24 GPUs make, where batches wait for nodes", {"large_nodes": 12})
_KEEP = Assumption("host memory keeps weights for 15 s, as in the paper's study of traces", {"keep_s": 5.0})
_RING = Assumption("NCCL takes the recorded time of groups made on the way, not its ring's", {"nccl": RING})


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["p90"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("model") == "13B"))
    means = dict(table.group_by("system", maintain_order=True).agg(pl.col("p90_s").mean()).iter_rows())
    parts = ", ".join(f"{name} {value:.2f} s" for name, value in means.items())
    return f"On the replayed half hour 90 % of 13B's batches have their first tokens within: {parts}."


def _judge(draft: Draft) -> list[Verdict]:
    found = [
        _order(draft, "P90 TTFT is 2.4 to 5 times better for every model and baseline", "2.4 to 5 times", _better,
               (_LARGE, _KEEP)),
    ]  # fmt: skip
    for systems, word in (((NCCL, FAASNET), "right"), ((SERVERLESSLLM,), "left")):
        claim = f"against the fixed rates of Fig 9 P90 of {' and '.join(systems)} shifts to the {word}"
        found.append(_order(draft, claim, f"shifts {word}", functools.partial(_shifts, systems, word), (_LARGE,)))
    return found


def _better(tables: Mapping[str, pl.DataFrame]) -> tuple[str, bool]:
    """P90 of each baseline over FaaScale's, for each model: the range, and how many lie within the published one."""
    ratios = _ratios(tables["p90"]).group_by("model", "system", maintain_order=True).agg(pl.col("ratio").mean())
    within = [RANGE[0] <= value <= RANGE[1] for value in ratios["ratio"]]
    each = ", ".join(f"{row['system']} {row['model']} {row['ratio']:.2g}" for row in ratios.to_dicts())
    return f"{each} times; {sum(within)} of {len(within)} within", all(within)


def _shifts(systems: tuple[str, ...], word: str, tables: Mapping[str, pl.DataFrame]) -> tuple[str, bool]:
    """P90 on the trace over P90 at the fixed rates, for each model."""
    trace = tables["p90"].group_by("model", "system", maintain_order=True).agg(pl.col("p90_s").mean())
    both = trace.filter(pl.col("system").is_in(systems)).join(
        tables["fixed"], on=["model", "system"], suffix="_fixed", maintain_order="left"
    )
    ratios = {f"{row['system']} {row['model']}": row["p90_s"] / row["p90_s_fixed"] for row in both.to_dicts()}
    held = all((value > 1) == (word == "right") for value in ratios.values())
    return ", ".join(f"{name} x {value:.2g}" for name, value in ratios.items()), held


Measure = Callable[[Mapping[str, pl.DataFrame]], tuple[str, bool]]


def _order(draft: Draft, claim: str, published: str, measure: Measure, blame: tuple[Assumption, ...]) -> Verdict:
    first = draft.tables["p90"]["backend"][0]
    ours, held = measure({name: table.filter(pl.col("backend") == first) for name, table in draft.tables.items()})
    reading: Reading = "reproduced" if held else "differs"
    reason = "means over reconstructions"
    if not draft.comparable:
        reading, reason = "not comparable", draft.reason
    elif not held:
        reason = ". ".join(_blamed(draft, one, measure) for one in blame)
    return Verdict(
        claim=claim, published=published, ours=ours, strength="ordering", verdict=reading, reason=reason,
        mode=draft.mode, seeds=draft.seeds, trace=draft.trace,
    )  # fmt: skip


def _blamed(draft: Draft, one: Assumption, measure: Measure) -> str:
    change = ", ".join(f"{name} = {value}" for name, value in one.change.items())
    moved, now = measure(draft.rerun(one.change))
    return f"Assumed here: {one.text}; with {change} it is {moved}, {'as' if now else 'still not as'} published"


@experiment(
    "lambdascale/fig11",
    title="First tokens on the half-hour trace",
    question="How long do batches wait for first tokens while a bursty half hour is replayed?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 3.0, "simpy": 20.0},
    draw="replayed.waits",
    panels=("cdf 7B", "cdf 13B", "cdf 70B", "p90"),
    say=_say,
    matches=(Match(assumptions=(_LARGE, _KEEP, _RING)),),
    judges=(_judge,),
    agrees=(
        Agree("P90 wait", "p90", ("reconstruction", "model", "system"), "p90_s", {("compiled", "simpy"): (0.0, 0.0)}),
    ),
)
def fig11(
    context: Context,
    *,
    cluster: SmallCluster = "lambdascale-testbed1",
    large_cluster: LargeCluster = "lambdascale-testbed2",
    nodes: Nodes = 12,
    large_nodes: LargeNodes = 6,
    reconstructions: Reconstructions = 10,
    tick_s: Tick = 1.0,
    memory_tick_s: TickWithMemory = 0.5,
    keep_s: KeepInMemory = 15.0,
    pinned: Pinned = 2,
    hosts_send: Senders = True,
    tokens: Tokens = TOKENS,
    overhead_s: Overhead = 0.002,
    nccl: NcclTime = RECORDED,
    tree_rate: TreeRate = 1.0,
) -> dict[str, pl.DataFrame]:
    """Waits of all batches by system and model, P90 on every reconstruction, and P90 at the fixed rates of Figure 9.

    The judged ratio is the geometric mean over three models and three baselines; the trace is reconstructed, as for
    Figure 10.
    """
    settings = Settings(reconstructions, tick_s, memory_tick_s, keep_s, pinned, hosts_send, overhead_s, tokens)
    found = worlds(context, cluster, large_cluster, nodes, large_nodes, nccl, tree_rate)
    rows, waits = [], {}
    for replay in replays(context, found, settings):
        values = waits_s(replay.run)
        about = {"reconstruction": replay.reconstruction, "model": replay.one.label, "system": replay.system}
        rows.append(about | {"p50_s": float(np.quantile(values, 0.5)), "p90_s": float(np.quantile(values, 0.9))})
        waits.setdefault((replay.one.label, replay.system), []).append(values)
    table, fixed = pl.DataFrame(rows), _fixed(context, found, settings)
    return {"p90": table, "cdf": _curves(waits), "fixed": fixed, "headline": headline(_known(table))}


def _curves(waits: dict[tuple[str, str], list[np.ndarray]]) -> pl.DataFrame:
    share = (np.arange(POINTS) + 0.5) / POINTS
    parts = [
        pl.DataFrame({"share": share, "wait_s": np.quantile(np.concatenate(values), share)}).with_columns(
            model=pl.lit(label), system=pl.lit(system)
        )
        for (label, system), values in waits.items()
    ]
    return pl.concat(parts)


def _fixed(context: Context, found: list[World], settings: Settings) -> pl.DataFrame:
    """P90 of 50 batches at the fixed rates of Figure 9, d to f."""
    rows = []
    for one in found:
        arrival = np.arange(50) / PANELS[one.label]
        for system in SYSTEMS:
            run = run_on(context, one, system, Rules(1, settings.tick_s, None, settings.overhead_s), batches(arrival))
            rows.append({"model": one.label, "system": system, "p90_s": float(np.quantile(waits_s(run), 0.9))})
    return pl.DataFrame(rows)


def _ratios(p90: pl.DataFrame) -> pl.DataFrame:
    """P90 of each baseline over FaaScale's, by reconstruction and model."""
    ours = p90.filter(pl.col("system") == LAMBDASCALE).select("reconstruction", "model", ours="p90_s")
    others = p90.filter(pl.col("system").is_in(BASELINES))
    return others.join(ours, on=["reconstruction", "model"], maintain_order="left").with_columns(
        ratio=pl.col("p90_s") / pl.col("ours")
    )


def _known(table: pl.DataFrame) -> list[tuple[str, Any, float, str]]:
    ratios = _ratios(table)
    means = ratios.group_by("reconstruction", maintain_order=True).agg(pl.col("ratio").log().mean().exp())
    rows: list[tuple[str, Any, float, str]] = [(BETTER, PLACE, value, "1") for value in means["ratio"]]
    rows += [(f"{BETTER} [acceptance]", PLACE, value, "1") for value in means["ratio"]]
    pairs = ratios.select("system", "model", "ratio").iter_rows()
    rows += [(f"P90 TTFT, {system} over FaaScale", model, value, "1") for system, model, value in pairs]
    each = table.filter(pl.col("system").is_in(ALL)).select("system", "model", "p90_s").iter_rows()
    return rows + [(f"first tokens, P90 wait, {system}", model, value, "s") for system, model, value in each]
