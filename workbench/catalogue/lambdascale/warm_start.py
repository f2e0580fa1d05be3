"""Ablation: several nodes start from their own host memories, and serve jointly long before each has everything."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.lambdascale.systems import BATCH, Overhead, SmallCluster, decode_s, must_hold
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Match, experiment
from workbench.errors import UserError
from workbench.operating.choices import counted
from workbench.scaling.model import Speed, WarmStart, tokens_per_s, warm_start

COUNTS = (1, 2, 3, 4, 6, 8)
JOINT, COMPLETE = "first joint copy", "all nodes complete"
PIPED, WAITING = "serving in pipelines", "waiting for all weights"
_LOGGED = "2 nodes"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["milestones"]
    chosen = table.filter(pl.col("nodes") == parameters["nodes"]).row(0, named=True)
    return (
        f"With {counted(parameters['nodes'], 'node')} a joint copy is there after {chosen['joint_s']:.3g} s, "
        f"{chosen['joint_s'] / chosen['complete_s']:.0%} of the {chosen['complete_s']:.3g} s that each takes alone."
    )


@experiment(
    "lambdascale/warm-start",
    title="Warm starts from host memory (ablation)",
    question="How soon do nodes that load the same model from their own memories serve together?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="staircase.warm_start",
    panels=("loads", "milestones", "rates"),
    say=_say,
    matches=(
        Match(("load of one 1.619 GB block from RAM", "bandwidth from RAM to one GPU"), fitted=ALL),
        Match(tolerance=0.05),
        Match(
            ("throughput, FaaScale over ServerlessLLM",),
            incomparable={
                "cold start, RPS 4-10 (7B) and 2-5 (13B)": "a third party's reading of cold starts under load; "
                "these are warm starts without any"
            },
        ),
    ),
)
def warm_starts(
    context: Context,
    *,
    cluster: SmallCluster = "lambdascale-testbed1",
    model: Annotated[
        str,
        Par(
            "Model", profile="model", status="inferred", source="artifact scripts/ctrl_0.log: Llama-2-7B by its blocks"
        ),
    ] = "llama-2-7b",
    blocks: Annotated[
        int, Par("Execution blocks", low=1, high=32, status="published", source="artifact: 8 execution blocks")
    ] = 8,
    nodes: Annotated[int, Par("Nodes drawn", low=1, high=8, free=True, source="2 in the artifact's log")] = 2,
    overhead_s: Overhead = 0.002,
) -> dict[str, pl.DataFrame]:
    """When nodes hold each block, first hold all jointly, and complete; tokens per second meanwhile.

    Each node loads over its own PCIe link in rotated strides; pipelines form as in the artifact, and all leave them
    when all are complete. A decoding step takes the recorded seconds of Llama-2-7B, whatever the model.
    """
    profile, shape = context.cluster(cluster), context.model(model)
    must_hold(profile, shape, 1)
    host = profile.host
    if host.pcie_switch is None and host.pcie is None:
        raise UserError(f"Cluster {profile.name} states no path from host memory to a GPU; choose one that does.")
    rate = context.cite("host memory to a GPU", (host.pcie_switch or host.pcie).rate())
    size = shape.block_bytes(min(blocks, shape.layers))
    found = {count: warm_start(count, size, rate) for count in sorted({*COUNTS, nodes})}
    rows = [
        {
            "nodes": count,
            "joint_s": one.joint_s,
            "complete_s": float(one.complete_s.max()),
            "pipeline_s": float(one.pipelines[0].forms),
        }
        for count, one in found.items()
    ]
    node, block = (grid.ravel() for grid in np.indices(found[nodes].arrival_s.shape))
    loads = pl.DataFrame({"node": node, "block": block, "time_s": found[nodes].arrival_s.ravel()})
    pace = Speed(token_s=decode_s("7B"), stages=len(size), overhead_s=overhead_s, batch=BATCH)
    milestones = pl.DataFrame(rows)
    known = [*_logged(found[2], size, rate), *_curves(milestones)]
    return {
        "loads": loads,
        "milestones": milestones,
        "rates": _rates(found[nodes], pace),
        "headline": headline(known),
    }


def _rates(one: WarmStart, pace: Speed) -> pl.DataFrame:
    """Tokens per second of all nodes, in pipelines until all are complete, or from each completion on."""
    end_s = float(one.complete_s.max())
    piped = [(float(pipeline.forms), end_s) for pipeline in one.pipelines for _ in pipeline.nodes]
    begin = np.array([*(begins for begins, _ in piped), *[end_s] * one.complete_s.size])
    end = np.array([*(ends for _, ends in piped), *[np.inf] * one.complete_s.size])
    rate = np.array([pace.batch / pace.piped_s] * len(piped) + [pace.batch / pace.token_s] * one.complete_s.size)
    lines = {PIPED: (begin, end, rate)}
    alone = np.full(one.complete_s.size, pace.batch / pace.token_s)
    lines[WAITING] = (one.complete_s, np.full(one.complete_s.size, np.inf), alone)
    time = np.unique([0.0, *begin, *one.complete_s, 1.15 * end_s])
    parts = []
    for name, columns in lines.items():
        table = pl.DataFrame(dict(zip(("begin_s", "end_s", "tokens_per_s"), columns, strict=True)))
        parts.append(pl.DataFrame({"how": name, "time_s": time, "tokens_per_s": tokens_per_s(table, time)}))
    return pl.concat(parts)


def _logged(two: WarmStart, size: tuple[int, ...], rate: float) -> list[tuple[str, Any, float, str]]:
    """What the artifact's log of two nodes holds."""
    return [
        ("load of one 1.619 GB block from RAM", _LOGGED, size[len(size) // 2] / rate, "s"),
        ("load of one 1.881 GB block from RAM", _LOGGED, size[0] / rate, "s"),
        (JOINT, _LOGGED, two.joint_s, "s"),
        ("both nodes complete", _LOGGED, float(two.complete_s.max()), "s"),
        ("first joint copy over full load", _LOGGED, two.joint_s / float(two.complete_s.max()), "1"),
        ("bandwidth from RAM to one GPU", _LOGGED, rate, "bytes/s"),
    ]


def _curves(milestones: pl.DataFrame) -> list[tuple[str, Any, float, str]]:
    named = milestones.with_columns(first=pl.lit(f"{JOINT}, x = nodes"), last=pl.lit(f"{COMPLETE}, x = nodes"))
    rows = curve_rows(named, "first", "nodes", "joint_s", "s")
    return rows + curve_rows(named, "last", "nodes", "complete_s", "s")
