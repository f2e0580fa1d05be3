"""The testbed of nine MIG slices with LLaMA-2-7B, as the model of this workbench has it."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from workbench import profiles
from workbench.catalogue.chains import common
from workbench.catalogue.chains.common import SUMMARY
from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.catalogue.tracing import replayed
from workbench.chains import (
    Block,
    Fleet,
    JobList,
    Overheads,
    TokenTimes,
    block_of,
    fleet_of,
    jobs_of_requests,
    round_trips,
    servers_of,
    sites_of,
    token_times,
)
from workbench.errors import UserError

TRACE, REQUESTS = "azure-code-2023", 1000
WORK = {"as the scripts have it (0.86)": 0.86e9, "twice the parameters (0.405)": 0.405e9}
"""FLOP of a token in a block of LLaMA-2-7B, by who says so."""
SLICES = {"120/80 TFLOPS": "server-chains", "156/78 TFLOPS": "server-chains-artifact"}
"""Compute of 3g and 2g slices, and the preset that holds it."""

Cluster = Annotated[
    str, Par("Cluster", profile="cluster", status="published", source=f"{SUMMARY} §4.2.1: three A100, nine MIG slices")
]
Served = Annotated[str, Par("Model", profile="model", status="published", source=f"{SUMMARY} §4.2.1: LLaMA-2-7B")]
Replayed = Annotated[
    str,
    Par("Trace", trace=True, status="published", source=f"{SUMMARY} §4.2.1: Azure trace, code, first 1,000 requests"),
]
Slices = Annotated[
    str,
    Par(
        "Compute of the slices",
        choices=tuple(SLICES),
        status="published",
        source="MATLAB artifact: 156 and 78 (4/8 and 2/8 of 312); the paper: 120 and 80 (by SM count)",
    ),
]
Work = Annotated[
    str,
    Par(
        "FLOP of a token and block",
        choices=tuple(WORK),
        status="published",
        source="authors' scripts: F = 0.86 GFLOP; counting gives 0.405",
    ),
]


class Bed(NamedTuple):
    """The servers, a mean job, and how long jobs take on each server."""

    fleet: Fleet
    times: TokenTimes
    usual: tuple[float, float, float]
    fast: np.ndarray
    round_trip_s: np.ndarray
    block: Block
    model: profiles.Model


def jobs_of(context: Context, trace: str, count: int) -> JobList:
    """The first requests of a trace as jobs of tokens."""
    requests = replayed(context, trace, published=(TRACE,)).requests.head(count)
    return jobs_of_requests(requests, context.seed)


def rate_of(jobs: JobList) -> float:
    """Jobs a second from the first to the last, by which BPRR places blocks; `UserError` where all come at once."""
    if not (span_s := float(jobs.arrival_s[-1] - jobs.arrival_s[0])):
        raise UserError(
            f"Of the trace's first requests ({jobs.arrival_s.size}) all arrive at once, which is no rate to place "
            "blocks by; give a trace whose first requests arrive at several times."
        )
    return jobs.arrival_s.size / span_s


def bed(context: Context, cluster: Any, model: Any, slices: str, work: str, jobs: JobList, number: int | None) -> Bed:
    """The servers with round trips of one draw of sites, or with those of the Python artifact (`number` None).

    Fast servers are nearest, as in the MATLAB artifact. The mean job is that of the jobs given.
    """
    kinds, fixed = servers_of(context.cluster(cluster))
    preset = SLICES[slices]
    kinds = [kind.under(preset) if any(row.preset == preset for row in kind.alternates) else kind for kind in kinds]
    kinds = sorted(kinds, key=lambda kind: -float(kind.memory_bytes))
    served = context.model(model)
    block = block_of(served)
    if served.name == "llama-2-7b":
        block = block._replace(flops_per_token=WORK[work])
    if number is None and fixed is not None:
        trips = fixed
    else:
        rng = context.random(f"sites {number}")
        trips = np.sort(round_trips(sites_of(profiles.cluster(common.SITES)), len(kinds), rng, "random"))
    sites = profiles.cluster(common.SITES)
    message, each = (sites.alternate("orchestrator", f"{name}_s") for name in ("serialisation", "block_overhead"))
    context.cite("(de)serialisation of a message", message)
    context.cite("overhead of a block", each)
    context.cite("weights of a block", block.bytes, "bytes", "published", "authors' scripts, or from the model's shape")
    context.cite("cache of a job and block", block.cache_bytes, "bytes", "computed", "shape x 2,048 tokens")
    context.cite("work of a token in a block", block.flops_per_token, "flop", "published", work)
    times = token_times(kinds, trips, block, Overheads(float(message), 0.0, float(each)))
    usual = tuple(jobs.work.mean(axis=0).tolist())
    fleet = fleet_of(kinds, served.layers, block, times, usual)
    fast = fleet.memory_bytes == fleet.memory_bytes.max()
    return Bed(fleet, times, usual, fast, trips, block, served)
