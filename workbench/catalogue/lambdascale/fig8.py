"""Figure 8: tokens per second while a cluster scales out from 1, 2 and 4 replicas, by four systems."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.lambdascale.fig8_judging import judge
from workbench.catalogue.lambdascale.fig8_running import watched
from workbench.catalogue.lambdascale.systems import (
    BATCH,
    BLOCKS,
    DECODE,
    LAMBDASCALE,
    PARTS,
    RECORDED,
    SYSTEMS,
    LargeCluster,
    LargeNodes,
    NcclTime,
    Nodes,
    Overhead,
    SmallCluster,
    TreeRate,
    World,
    complete_s,
    formed,
    world,
)
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Agree, Assumption, Match, experiment
from workbench.scaling.model import Formed, Speed, lanes, tokens_per_s

SOURCES = (1, 2, 4)
FIRST = "first tokens, {} {}"
_TREE = Assumption("FaaSNet's link gives what its records show, 38 GB/s, and not FaaScale's 42", {"tree_rate": 1.094})


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["starts"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("model") == "7B"))
    ours = table.filter(pl.col("system") == LAMBDASCALE).sort("sources")
    first = ", ".join(f"{row['first_s']:.2f} s with k = {row['sources']}" for row in ours.to_dicts())
    others = table.filter(pl.col("system") != LAMBDASCALE).group_by("system", maintain_order=True)
    waits = {name: sorted({f"{wait:.2f}" for wait in part["first_s"]}, key=float) for (name,), part in others}
    rest = ", ".join(f"{name} {' to '.join((each[0], each[-1])[: len(each)])} s" for name, each in waits.items())
    always = ", whatever k" if all(len(each) == 1 for each in waits.values()) else ""
    return f"First tokens of 7B come after {first} by pipelines; {rest}{always}."


@experiment(
    "lambdascale/fig8",
    title="Tokens per second while scaling out",
    question="How soon do tokens flow, and how fast, when a cluster scales out from one, two or four replicas?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.1, "compiled": 0.4, "simpy": 4.0},
    draw="staircase.scaling_out",
    panels=("small", "large", "starts"),
    say=_say,
    matches=(
        Match(("first tokens, FaaSNet 7B",), assumptions=(_TREE,)),
        Match((DECODE,), fitted=ALL),
        Match(("load of 70B from SSD",), fitted=ALL, note="the rate of the SSD is that of a recorded load of 30 s"),
        Match(tolerance=0.03, note="the notes print two or three digits"),
    ),
    judges=(judge,),
    agrees=(
        Agree(
            "first tokens",
            "starts",
            ("system", "model", "sources"),
            "first_s",
            {("analytic", "compiled"): (-1e-9, 1e-9), ("analytic", "simpy"): (-1e-9, 1e-9)},
        ),
        Agree(
            "level when all is loaded",
            "starts",
            ("system", "model", "sources"),
            "final_per_s",
            {("analytic", "compiled"): (-0.03, 0.03), ("analytic", "simpy"): (-0.03, 0.03)},
        ),
    ),
)
def fig8(
    context: Context,
    *,
    cluster: SmallCluster = "lambdascale-testbed1",
    large_cluster: LargeCluster = "lambdascale-testbed2",
    nodes: Nodes = 12,
    large_nodes: LargeNodes = 6,
    overhead_s: Overhead = 0.002,
    variant: Annotated[
        str,
        Par(
            "Pipelines",
            choices=("artifact", "paper"),
            free=True,
            status="published",
            source="the artifact's halved lengths, or Algorithm 2 (MLSys'26 paper §4.3)",
        ),
    ] = "artifact",
    switch: Annotated[
        str,
        Par(
            "Nodes leave their pipeline",
            choices=("whole", "each"),
            free=True,
            status="published",
            source="when all are complete in the artifact, each when it is in the paper",
        ),
    ] = "whole",
    nccl: NcclTime = RECORDED,
    tree_rate: TreeRate = 1.0,
) -> dict[str, pl.DataFrame]:
    """Tokens per second of the new nodes over time, first tokens and formation of every pipeline, for k = 1, 2, 4.

    New nodes only: the replicas that are there at first send and do not count. In a pipeline of p nodes p requests make
    a token in a decoding step and 8 dispatches, alone in a decoding step. Loading is as fast as if nobody computed.
    """
    speed = {"overhead_s": overhead_s, "stages": BLOCKS, "batch": BATCH}
    worlds = [
        world(context, "7B", cluster, nodes, nccl, tree_rate),
        world(context, "70B", large_cluster, large_nodes, nccl, tree_rate),
    ]
    formation, rates, starts = [], [], []
    for one in worlds:
        for k in (k for k in SOURCES if k < one.nodes):
            context.tell(f"{one.label}, k = {k}")
            out = formed(one, k, variant)
            pace = Speed(token_s=one.token_s, **speed)
            formation += _formation(one, k, out)
            for system in SYSTEMS:
                about = {"system": system, "model": one.label, "sources": k}
                if context.backend == "analytic":
                    table = _lanes(one, system, out, pace, switch)
                    points, start = _rates(table, _breakpoints(table)), _start(table, pace)
                else:
                    points, start = watched(context, one, system, k, overhead_s, variant, switch)
                rates += [about | row for row in points]
                starts.append(about | start)
    tables = {"formation": pl.DataFrame(formation), "rates": pl.DataFrame(rates), "starts": pl.DataFrame(starts)}
    return {**tables, "headline": headline(_known(context, cluster, worlds, tables["starts"]))}


def _lanes(one: World, system: str, out: Formed, pace: Speed, switch: str) -> pl.DataFrame:
    """Who serves from when to when: pipelines and nodes of λScale, or nodes of a baseline."""
    if system == LAMBDASCALE:
        return lanes(out, pace, switch)
    begin = complete_s(one, system, out.asked.targets)
    columns = {"begin_s": begin, "end_s": np.full(begin.size, np.inf), "tokens_per_s": pace.batch / pace.token_s}
    return pl.DataFrame({"target": np.arange(begin.size), "how": "alone", **columns})


def _breakpoints(table: pl.DataFrame) -> np.ndarray:
    times = np.concatenate([[0.0], table["begin_s"].to_numpy(), table["end_s"].to_numpy()])
    return np.unique(times[np.isfinite(times)])


def _rates(table: pl.DataFrame, points: np.ndarray) -> list[dict[str, float]]:
    pairs = zip(points.tolist(), tokens_per_s(table, points).tolist(), strict=True)
    return [{"time_s": time, "tokens_per_s": rate} for time, rate in pairs]


def _start(table: pl.DataFrame, pace: Speed) -> dict[str, float]:
    """First tokens, the last change, and the plateau: how long pipelines serve, and at what share of the end's rate."""
    begin_s = table["begin_s"].to_numpy()
    piped_s, last_s = begin_s[(table["how"] == "pipeline").to_numpy()], float(begin_s.max())
    before, final = tokens_per_s(table, np.array([np.nextafter(last_s, 0.0), last_s])).tolist()
    plateau = before if piped_s.size else 0.0
    begins = float(piped_s.min()) if piped_s.size else last_s
    return {
        "first_s": _first_token(table, pace),
        "last_s": last_s,
        "final_per_s": final,
        "plateau_share": plateau / final,
        "plateau_s": last_s - begins,
    }


def _first_token(table: pl.DataFrame, pace: Speed) -> float:
    """The end of the first step; a pipeline that is left before it has made one makes none."""
    first_s = table["begin_s"].to_numpy() + np.where(table["how"] == "pipeline", pace.piped_s, pace.token_s)
    return float(first_s[first_s <= table["end_s"].to_numpy()].min())


def _formation(one: World, k: int, out: Formed) -> list[dict[str, Any]]:
    rows = [
        {"length": pipeline.in_flight, "steps": pipeline.forms, "time_s": pipeline.forms * out.asked.step_s}
        for pipeline in out.pipelines
    ]
    end = {"length": 0, "steps": float(out.complete_steps.max()), "time_s": float(out.complete_s.max())}
    return [
        {"model": one.label, "sources": k, "nodes": one.nodes, "pipeline": n, **row}
        for n, row in enumerate([*rows, end])
    ]


def _known(
    context: Context, cluster: str, worlds: list[World], starts: pl.DataFrame
) -> list[tuple[str, Any, float, str]]:
    rows: list[tuple[str, Any, float, str]] = [
        (FIRST.format(row["system"], row["model"]), f"k={row['sources']}", row["first_s"], "s")
        for row in starts.to_dicts()
    ]
    small, large = worlds
    middle = world(context, "13B", cluster, 12)
    rows.append(("load of 70B from SSD", "one node", large.ssd_s, "s"))
    rows += [*_predicted(small), *_predicted(middle), *_planned(small, 12), *_planned(small, 8)]
    return rows + [(DECODE, one.label, one.token_s, "s") for one in (small, middle, large)]


def _predicted(one: World) -> list[tuple[str, Any, float, str]]:
    """Seconds of a step, of the first pipeline and of all, with the artifact's planner on 12 nodes."""
    one = one._replace(nodes=12)
    step = f"predicted time of one step, FaaScale {one.label}"
    rows: list[tuple[str, Any, float, str]] = [(step, f"{BLOCKS * PARTS} blocks", formed(one, 1).asked.step_s, "s")]
    for k in SOURCES:
        out = formed(one, k)
        rows.append((f"predicted first pipeline, FaaScale {one.label}", f"k={k}", float(out.forms_s.min()), "s"))
        rows.append((f"predicted end of loading, FaaScale {one.label}", f"k={k}", float(out.complete_s.max()), "s"))
    return rows


def _planned(one: World, nodes: int) -> list[tuple[str, Any, float, str]]:
    """Steps at which the artifact's pipelines form."""
    rows: list[tuple[str, Any, float, str]] = []
    for k in SOURCES:
        out = formed(one._replace(nodes=nodes), k)
        series = f"step at which a pipeline forms, artifact planner, {nodes} nodes, k={k}"
        rows += [(series, f"{pipeline.in_flight} nodes long", pipeline.forms, "steps") for pipeline in out.pipelines]
        series = f"steps until all is loaded, artifact planner, {nodes} nodes, k={k}"
        rows.append((series, "", float(out.complete_steps.max()), "steps"))
    return rows
