"""Figure 10: GPUs in use over half an hour of BurstGPT, and GPU time, by five systems and for three models."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.lambdascale.replaying import IDEAL
from workbench.catalogue.lambdascale.systems import (
    FAASNET,
    LAMBDASCALE,
    NCCL,
    RECORDED,
    RING,
    SERVERLESSLLM,
    TOKENS,
    LargeCluster,
    LargeNodes,
    NcclTime,
    Nodes,
    Overhead,
    SmallCluster,
    TreeRate,
)
from workbench.catalogue.lambdascale.trace_replay import (
    SPEEDS,
    KeepInMemory,
    Pinned,
    Reconstructions,
    Replay,
    Senders,
    Settings,
    Tick,
    TickWithMemory,
    Tokens,
    arrivals,
    replays,
    worlds,
)
from workbench.catalogue.spec import ALL, Agree, Assumption, Match, experiment
from workbench.results import Reading, Verdict
from workbench.serving import metrics

SAVED = "GPU time saved against {}, largest"
ABOVE = "GPU time above the ideal scaler"
WINDOWS = 100
"""Over which the number of GPUs is averaged for the drawing."""

INPUTS = ("replay speed-up of the arrivals", "length of the replay", "mean rate of the replay")

_TICK = Assumption("with host memory decisions come every 0.5 s, without every second", {"memory_tick_s": 1.0})
_KEEP = Assumption("host memory keeps weights for 15 s, as in the paper's study of traces", {"keep_s": 5.0})
_RING = Assumption("NCCL takes the recorded time of groups made on the way, not its ring's", {"nccl": RING})
_LONG = Assumption("a batch makes 64 tokens, so 7B holds a node for 0.9 s and loads for half of that", {"tokens": 192})
_FAST = Assumption("every system decides every second unless it has host memory", {"tick_s": 0.5})


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["gpu_time"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("model") == "13B"))
    means = dict(table.group_by("system", maintain_order=True).agg(pl.col("gpu_s").mean()).iter_rows())
    parts = ", ".join(f"{name} {value:,.0f}" for name, value in means.items())
    return f"13B over the replayed half hour takes GPU seconds of {parts}."


def _judge(draft: Draft) -> list[Verdict]:
    return [
        _order(draft, "GPU time: ideal below FaaScale below every baseline", "for every model", _between, _FAST),
        _order(draft, "ServerlessLLM takes the most GPU time", "for every model", _most, _KEEP),
        _order(
            draft, "FaaScale's new instances serve sooner after they are asked for", "for every model", _sooner, _RING
        ),
    ]


def _between(tables: Mapping[str, pl.DataFrame]) -> tuple[str, list[bool]]:
    def held(row: Mapping[str, float]) -> bool:
        others = [row[name] for name in (NCCL, FAASNET, SERVERLESSLLM)]
        return row[IDEAL] < row[LAMBDASCALE] < min(others)

    return _each(tables["gpu_time"], "gpu_s", held)


def _most(tables: Mapping[str, pl.DataFrame]) -> tuple[str, list[bool]]:
    return _each(tables["gpu_time"], "gpu_s", lambda row: row[SERVERLESSLLM] == max(row.values()))


def _sooner(tables: Mapping[str, pl.DataFrame]) -> tuple[str, list[bool]]:
    def held(row: Mapping[str, float]) -> bool:
        return row[LAMBDASCALE] < min(row[name] for name in (NCCL, FAASNET, SERVERLESSLLM))

    return _each(tables["gpu_time"], "serves_s", held)


def _each(table: pl.DataFrame, column: str, held: Callable[[Mapping[str, float]], bool]) -> tuple[str, list[bool]]:
    """Whether an order holds on every reconstruction and for every model, and where in words."""
    table = table.filter(pl.col("backend") == table["backend"][0]) if "backend" in table.columns else table
    wide = table.pivot("system", index=["reconstruction", "model"], values=column)
    found: dict[str, list[bool]] = {}
    for row in wide.to_dicts():
        values = {name: value for name, value in row.items() if name not in ("reconstruction", "model")}
        found.setdefault(row["model"], []).append(held(values))
    text = ", ".join(f"{name} in {sum(each)} of {len(each)}" for name, each in found.items())
    return text, [one for each in found.values() for one in each]


def _order(
    draft: Draft,
    claim: str,
    published: str,
    measure: Callable[[Mapping[str, pl.DataFrame]], tuple[str, list[bool]]],
    blame: Assumption,
) -> Verdict:
    ours, held = measure(draft.tables)
    reading: Reading = "reproduced" if all(held) else ("undecided" if sum(held) * 2 > len(held) else "differs")
    reason = "reconstructions and models for which the order holds"
    if not draft.comparable:
        reading, reason = "not comparable", draft.reason
    elif reading == "differs":
        change = ", ".join(f"{name} = {value}" for name, value in blame.change.items())
        reason = f"Assumed here: {blame.text}; with {change} it holds for {measure(draft.rerun(blame.change))[0]}"
    return Verdict(
        claim=claim, published=published, ours=ours, strength="ordering", verdict=reading, reason=reason,
        mode=draft.mode, seeds=draft.seeds, trace=draft.trace,
    )  # fmt: skip


@experiment(
    "lambdascale/fig10",
    title="GPUs in use on the half-hour trace",
    question="How many GPUs does each system hold while a bursty half hour is replayed, and what does that add up to?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 3.0, "simpy": 15.0},
    draw="replayed.gpus",
    panels=("gpus 7B", "gpus 13B", "gpus 70B", "time"),
    say=_say,
    matches=(
        Match(INPUTS, fitted=ALL),
        Match((SAVED.format(NCCL),), assumptions=(_TICK, _RING)),
        Match((SAVED.format(SERVERLESSLLM),), assumptions=(_TICK, _KEEP)),
        Match((SAVED.format(FAASNET),), assumptions=(_TICK, _FAST)),
        Match((ABOVE,), assumptions=(_LONG,)),
    ),
    judges=(_judge,),
    agrees=(
        Agree(
            "GPU time", "gpu_time", ("reconstruction", "model", "system"), "gpu_s", {("compiled", "simpy"): (0.0, 0.0)}
        ),
    ),
)
def fig10(
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
    """GPU seconds of every system, model and reconstruction; mean GPUs over time on the first reconstruction.

    GPU time counts from the decision that takes a node to the one that releases it. The trace itself is not available:
    it is drawn anew from the arrivals of every minute, so verdicts are about means over reconstructions.
    """
    settings = Settings(reconstructions, tick_s, memory_tick_s, keep_s, pinned, hosts_send, overhead_s, tokens)
    found = worlds(context, cluster, large_cluster, nodes, large_nodes, nccl, tree_rate)
    rows, curves = [], []
    for replay in replays(context, found, settings):
        rows.append(_row(replay))
        if replay.reconstruction == 0:
            about = {"model": pl.lit(replay.one.label), "system": pl.lit(replay.system)}
            curves.append(_over_time(replay.run.allocation).with_columns(**about))
    table = pl.DataFrame(rows)
    return {"gpu_time": table, "gpus": pl.concat(curves), "headline": headline(_known(table, context.seed))}


def _over_time(allocation: pl.DataFrame) -> pl.DataFrame:
    """Mean number of GPUs held in each of `WINDOWS` windows of the run."""
    time, held = allocation["time_s"].to_numpy(), allocation["gpus_allocated"].to_numpy()
    edges = np.linspace(0.0, time[-1], WINDOWS + 1)
    total = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(time))])
    inside = np.diff(np.interp(edges, time, total))
    return pl.DataFrame({"time_s": edges[:-1], "gpus": inside / np.diff(edges)})


def _row(replay: Replay) -> dict[str, Any]:
    """GPU time of a run, and how long its new instances took from the decision until they served."""
    loads = replay.run.outcome.loads
    serves_s = np.where(np.isnan(loads[:, 8]), loads[:, 1], loads[:, 8]) - loads[:, 0]
    serves_s = serves_s[~np.isnan(serves_s)]
    return {
        "reconstruction": replay.reconstruction,
        "model": replay.one.label,
        "system": replay.system,
        "gpu_s": metrics(replay.run)["gpu_allocated_s"],
        "serves_s": float(serves_s.mean()) if serves_s.size else 0.0,
        "starts": len(loads),
    }


def _known(table: pl.DataFrame, seed: int) -> list[tuple[str, Any, float, str]]:
    rows: list[tuple[str, Any, float, str]] = []
    wide = table.pivot("system", index=["reconstruction", "model"], values="gpu_s")
    for system in (FAASNET, NCCL, SERVERLESSLLM):
        saved = wide.with_columns(saved=1 - pl.col(LAMBDASCALE) / pl.col(system))
        best = saved.group_by("reconstruction", maintain_order=True).agg(pl.col("saved").max())
        rows += [(SAVED.format(system), "", value, "1") for value in best["saved"]]
        named = saved.select("model", "saved").iter_rows()
        rows += [(f"GPU time saved against {system}", model, value, "1") for model, value in named]
    above = wide.with_columns(above=pl.col(LAMBDASCALE) / pl.col(IDEAL) - 1)
    worst = above.group_by("reconstruction", maintain_order=True).agg(pl.col("above").max())
    rows += [(ABOVE, "", value, "1") for value in worst["above"]]
    rows += [(f"{ABOVE}, by model", model, value, "1") for model, value in above.select("model", "above").iter_rows()]
    for label, speed in SPEEDS.items():
        arrival = arrivals(seed, speed)
        values = (speed, float(arrival[-1]), arrival.size / float(arrival[-1]))
        rows += [
            (name, label, value, unit) for name, value, unit in zip(INPUTS, values, ("1", "s", "1/s"), strict=True)
        ]
    return rows
