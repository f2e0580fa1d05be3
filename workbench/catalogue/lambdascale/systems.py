"""The systems of λScale's evaluation: how their weights reach new nodes, and how fast nodes make tokens."""

import functools
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.lambdascale.fig7 import MODELS, recorded_series, records
from workbench.catalogue.links import link_cost
from workbench.catalogue.parameters import Par
from workbench.catalogue.published import published
from workbench.errors import UserError
from workbench.profiles import Cluster, Deployment, Model, check_fits
from workbench.records import not_negative
from workbench.scaling.model import Formed, ScaleOut, scale_out
from workbench.transfer.model import Hockney, completion, fit_hockney
from workbench.transfer.policy import steps

LAMBDASCALE, NCCL, FAASNET, SERVERLESSLLM = "FaaScale", "NCCL", "FaaSNet", "ServerlessLLM"
SYSTEMS = (LAMBDASCALE, NCCL, FAASNET, SERVERLESSLLM)
GPUS = {"7B": 1, "13B": 1, "70B": 4}
BLOCKS, PARTS = 8, 2
"""Execution blocks, and transfer blocks of each, in the artifact."""

DECODE = "seconds of a decoding step, batch of 4"
BATCH, TOKENS = 4, 64
"""Prompts of a request, and tokens that each makes, in the artifact."""

RING_SHARE = 0.979
"""Of the nominal rate in the artifact's raw NCCL logs: 48.95 of 50 GB/s."""

RECORDED, RING = "as recorded", "ring at its logged rate"

SmallCluster = Annotated[
    str, Par("Cluster for 7B and 13B", profile="cluster", status="published", source="MLSys'26 paper §7.1, Testbed1")
]
LargeCluster = Annotated[
    str, Par("Cluster for 70B", profile="cluster", status="published", source="MLSys'26 paper §7.1, Testbed2")
]
Nodes = Annotated[
    int,
    Par("Nodes, sources included", low=2, high=24, status="published", source="MLSys'26 paper §7.1: up to 12 nodes"),
]
LargeNodes = Annotated[
    int,
    Par(
        "Nodes for 70B",
        low=2,
        high=24,
        status="inferred",
        source="24 GPUs (MLSys'26 paper §7.1) over 4 a model; the number used is not published",
    ),
]
Overhead = Annotated[
    float,
    Par(
        "Overhead of a dispatch in a pipeline",
        "s",
        low=0.0,
        high=0.02,
        step=0.0005,
        free=True,
        source="2 ms: not published; the height of the plateau in Fig 8, which would tell, could not be read",
    ),
]
NcclTime = Annotated[
    str,
    Par(
        "NCCL's time",
        choices=(RECORDED, RING),
        status="published",
        source="as recorded in the artifact, which sleeps for it; its raw logs show a much faster ring",
    ),
]
TreeRate = Annotated[
    float,
    Par(
        "FaaSNet: link rate over the fitted one",
        low=0.5,
        high=2.0,
        step=0.01,
        source="1: fitted to FaaSNet's recorded times, 38 GB/s and no overhead for 7B and 13B",
    ),
]


class World(NamedTuple):
    """One model and what it runs on.

    Attributes:
        label: "7B", "13B" or "70B".
        model: its profile.
        nodes, gpus: nodes in all, and GPUs of each.
        token_s: of a decoding step of one node.
        cost, tree: a message's cost by λScale and by FaaSNet.
        ring_s: seconds of NCCL's broadcast at its logged rate; None where its recorded seconds are taken.
        ssd_s, memory_s: seconds to load from a node's own SSD, and from its host's memory.
    """

    label: str
    model: Model
    nodes: int
    gpus: int
    token_s: float
    cost: Hockney
    tree: Hockney
    ring_s: float | None
    ssd_s: float
    memory_s: float


def decode_s(label: str) -> float:
    """The recorded seconds of a decoding step."""
    table = published("lambdascale/fig8").filter((pl.col("series") == DECODE) & (pl.col("x") == label))
    return float(table["value"][0])


def world(
    context: Context, label: str, cluster: str, nodes: int, nccl: str = RECORDED, tree_rate: float = 1.0
) -> World:
    """One model on its cluster, every number entered into the ledger.

    Parameters:
        label: "7B", "13B" or "70B".
        cluster: its name, path or record.
        nodes: in all.
        nccl: see `NcclTime`.
        tree_rate: FaaSNet's link rate over the fitted one.
    """
    profile, model = context.cluster(cluster), context.model(MODELS[label])
    size, host, gpus = model.weight_bytes, profile.host, GPUS[label]
    must_hold(profile, model, gpus)
    if host.ssd is None or not (host.pcie_switch or host.pcie):
        raise UserError(
            f"Cluster {profile.name} states no SSD or no path from host memory to a GPU; choose another one."
        )
    cost = link_cost(context, profile, nodes=nodes)
    tree = _tree(context, label, size)
    tree = Hockney(alpha_s=tree.alpha_s, bytes_per_s=tree.bytes_per_s * tree_rate)
    rate = gpus * float(host.pcie_switch.rate() if host.pcie_switch else host.pcie.rate())
    if host.host_memory is not None:
        rate = min(rate, float(host.host_memory.rate()))
    context.cite(f"host memory to the GPUs of {label}", rate, "bytes/s", "computed", f"{profile.name}, {gpus} GPUs")
    ssd = context.cite(f"SSD of a node, {profile.name}", host.ssd.rate())
    step_s = context.cite(f"decoding step of {label}", decode_s(label), "s", "published", "λScale artifact, batch of 4")
    ring_s = (
        None if nccl == RECORDED else size / (RING_SHARE * float(profile.nic.nominal_bytes_per_s or profile.nic.rate()))
    )
    seconds, status = (nccl_s(label, nodes), "published") if ring_s is None else (ring_s, "computed")
    context.cite(f"NCCL broadcast of {label} to all", seconds, "s", status, nccl)
    return World(label, model, nodes, gpus, step_s, cost, tree, ring_s, size / ssd, size / rate)


def must_hold(profile: Cluster, model: Model, gpus: int) -> None:
    """Refuse a cluster whose hosts lack accelerators, or their memory, for a copy of a model (`UserError`)."""
    have = profile.host.accelerators
    if have < gpus:
        raise UserError(
            f"A copy of {model.name} takes {gpus} accelerators of one host here, and those of {profile.name} have "
            f"{have}; choose a cluster with more."
        )
    check_fits(model, profile.host.accelerator, Deployment(tp=gpus))


def nccl_s(label: str, nodes: int) -> float:
    """NCCL's recorded seconds for a group of so many nodes, its source included.

    The record of the largest group stands for all of more than four nodes, as in the artifact.
    """
    table = published("lambdascale/fig7").filter(pl.col("series") == recorded_series("NCCL", label))
    known = {int(x): value for x, value in table.select("x", "value").iter_rows()}
    return not_negative(known[nodes if nodes in known and nodes <= 4 else max(known)], "recorded seconds")


@functools.cache
def _recorded_tree() -> Hockney:
    """FaaSNet's link by its recorded times of 7B and 13B."""
    return fit_hockney(*records(FAASNET))


def _tree(context: Context, label: str, size: int) -> Hockney:
    if label == "70B":
        table = published("lambdascale/fig7").filter(pl.col("series") == recorded_series(FAASNET, label))
        seconds = float(table.filter(pl.col("x") == "4")["value"][0])
        fit = Hockney(bytes_per_s=steps("faasnet_tree", 4, BLOCKS * PARTS) * size / (BLOCKS * PARTS) / seconds)
    else:
        fit = _recorded_tree()
    why = "fitted to FaaSNet's recorded times"
    context.cite(f"FaaSNet link rate, {label}", fit.bytes_per_s, "bytes/s", "fitted", why)
    return fit


def formed(one: World, sources: int, variant: str = "artifact") -> Formed:
    """λScale's scale-out of one model from so many sources to all its nodes."""
    return scale_out(
        ScaleOut(
            sources=sources, targets=one.nodes - sources, blocks=BLOCKS, parts=PARTS, variant=variant,
            weight_bytes=one.model.weight_bytes, bytes_per_s=one.cost.bytes_per_s, alpha_s=one.cost.alpha_s,
        )
    )  # fmt: skip


def complete_s(one: World, system: str, targets: int) -> np.ndarray:
    """When each of several targets has all weights by a baseline, float64[targets].

    FaaSNet and NCCL send from one source to all targets whatever the number of sources (MLSys'26 paper §7.3: for the
    baselines k is only how many replicas there are at first); ServerlessLLM reads each node's own SSD.
    """
    if system == FAASNET:
        table = completion("faasnet_tree", targets + 1, BLOCKS * PARTS, one.model.weight_bytes, one.tree, "barrier")
        return table["complete_s"].to_numpy()[1:]
    if system == NCCL:
        return np.full(targets, nccl_s(one.label, targets + 1) if one.ring_s is None else one.ring_s)
    return np.full(targets, one.ssd_s)
