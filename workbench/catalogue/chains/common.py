"""Fleets that the experiments on server chains draw, and the parameters they share."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from workbench import profiles
from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.chains import (
    Block,
    Fleet,
    Overheads,
    Sites,
    TokenTimes,
    block_of,
    fleet_of,
    round_trips,
    servers_of,
    sites_of,
    token_times,
)
from workbench.errors import UserError
from workbench.profiles import Accelerator, Model

SUMMARY = "summary of the paper in its authors' repository"
SITES = "server-chains-simulation"
"""The cluster whose profile states the statistics of sites."""

MESSAGES = EACH_TOKEN, EACH_JOB = ("18 ms a token", "50 ms a job")
"""What messages cost beside round trips: by the paper, every token's way being the same, and by its artifact."""

TYPES = ("random", "nearest")
PAPER_TYPES = f"{SUMMARY} §4.1.1: types assigned at random"
ARTIFACT_TYPES = "MATLAB artifact: the fast type goes to the servers with the shortest round trips"

Cluster = Annotated[
    str, Par("Kinds of servers", profile="cluster", status="published", source=f"{SUMMARY} §4.1.1: MIG slices")
]
Served = Annotated[str, Par("Model", profile="model", status="published", source=f"{SUMMARY} §4.1.1: BLOOM-176B")]
Servers = Annotated[
    int, Par("Servers (J)", low=10, high=60, step=1, status="published", source=f"{SUMMARY} §4.1.1: J = 20")
]
FastShare = Annotated[
    float,
    Par("Share of fast servers", low=0.0, high=1.0, step=0.05, status="published", source=f"{SUMMARY} §4.1.1: 0.2"),
]
Reserved = Annotated[
    int, Par("Jobs reserved for (c)", low=1, high=40, step=1, status="published", source=f"{SUMMARY} §4.1.1: c = 7")
]
MostLoad = Annotated[
    float,
    Par("Load at which chains are enough", low=0.1, high=0.99, step=0.01, status="published", source=f"{SUMMARY}: 0.7"),
]
Orchestrator = Annotated[
    str,
    Par(
        "Orchestrator",
        choices=("random", "best-connected"),
        status="published",
        source=f"{SUMMARY} §4.1.1: at random; the MATLAB artifact takes the site of lowest median",
    ),
]
Types = Annotated[
    str, Par("Which servers are fast", choices=TYPES, status="published", source=f"{PAPER_TYPES}; {ARTIFACT_TYPES}")
]
Draws = Annotated[int, Par("Draws of sites", low=1, high=20, step=1, free=True, source="chosen: see the intervals")]
TokensIn = Annotated[
    int, Par("Tokens in", low=1, high=2048, step=1, status="published", source=f"{SUMMARY} §4.1.1: 2,000 on average")
]
TokensOut = Annotated[
    int, Par("Tokens out", low=1, high=256, step=1, status="published", source=f"{SUMMARY} §4.1.1: 20 on average")
]


class Drawn(NamedTuple):
    """One draw of sites.

    Attributes:
        fleet: the servers.
        accelerators: of each.
        fast: bool[J].
        round_trip_s: float[J].
        block, times: what a block takes, and seconds for each unit of work.
        model: what is served.
    """

    fleet: Fleet
    accelerators: tuple[Accelerator, ...]
    fast: np.ndarray
    round_trip_s: np.ndarray
    block: Block
    times: TokenTimes
    model: Model


class Setting(NamedTuple):
    """What all draws of an experiment share: kinds of servers, how many, the model's block, a mean job, sites."""

    kinds: tuple[Accelerator, Accelerator]
    servers: int
    fast: int
    layers: int
    block: Block
    usual: tuple[float, float, float]
    overheads: Overheads
    orchestrator: str
    types: str
    model: Model
    sites: Sites


def setting(
    context: Context,
    cluster: Any,
    model: Any,
    servers: int,
    fast_share: float,
    *,
    orchestrator: str = "random",
    types: str = "random",
    tokens_in: float = 2000,
    tokens_out: float = 20,
    messages: str = EACH_TOKEN,
    overheads: Overheads | None = None,
) -> Setting:
    """Read the profiles of an experiment and enter them into the ledger.

    A cluster of more than two kinds gives those of most and of least memory. What messages cost is one of `MESSAGES`,
    unless `overheads` says it.
    """
    kinds, _ = servers_of(context.cluster(cluster))
    kinds = sorted(kinds, key=lambda kind: -float(kind.memory_bytes))
    served = context.model(model)
    block = block_of(served)
    sites = profiles.cluster(SITES)
    if overheads is None:
        overheads = _overheads(context, sites, messages)
    context.cite("weights of a block", block.bytes, "bytes", "published", "s_m, or from the model's shape")
    context.cite(
        "cache of a job and block", block.cache_bytes, "bytes", "computed", "shape x 2,048 tokens, not rounded"
    )
    context.cite("work of a token in a block", block.flops_per_token, "flop", "published", "F, or from the shape")
    for kind in dict.fromkeys((kinds[0].name, kinds[-1].name)):
        one = next(item for item in kinds if item.name == kind)
        for name in ("flops_per_s", "memory_bytes_per_s"):
            context.cite(f"{kind} {name}", one.speed(name, "nominal"))
    return Setting(
        (kinds[0], kinds[-1]),
        servers,
        int(servers * fast_share + 1e-9),
        served.layers,
        block,
        (1.0, float(tokens_in), float(tokens_out - 1)),
        overheads,
        orchestrator,
        types,
        served,
        sites_of(sites),
    )


def _overheads(context: Context, sites: profiles.Cluster, messages: str) -> Overheads:
    each = context.cite("overhead of a block", sites.alternate("orchestrator", "block_overhead_s"))
    if messages == EACH_TOKEN:
        stated = sites.alternate("orchestrator", "serialisation_s")
        return Overheads(context.cite("(de)serialisation of a message", stated), 0.0, each)
    stated = sites.alternate("orchestrator-artifact", "job_s")
    return Overheads(0.0, context.cite("messages of a job beside its round trips", stated), each)


def drawn(given: Setting, rng: np.random.Generator) -> Drawn:
    """Servers at random sites around an orchestrator; the fast type at random, or nearest."""
    trips = round_trips(given.sites, given.servers, rng, given.orchestrator)
    shuffled = rng.permutation(given.servers)
    chosen = (np.argsort(trips) if given.types == "nearest" else shuffled)[: given.fast]
    fast = np.zeros(given.servers, dtype=bool)
    fast[chosen] = True
    return at_sites(given, fast, trips)


def at_sites(given: Setting, fast: np.ndarray, round_trip_s: np.ndarray) -> Drawn:
    """The servers of one draw."""
    accelerators = tuple(given.kinds[0] if one else given.kinds[1] for one in fast)
    times = token_times(accelerators, round_trip_s, given.block, given.overheads)
    fleet = fleet_of(accelerators, given.layers, given.block, times, given.usual)
    return Drawn(fleet, accelerators, fast, round_trip_s, given.block, times, given.model)


def draws(context: Context, given: Setting, count: int) -> list[Drawn]:
    """Draws of sites, each from a stream of its own: the same for every number of them."""
    return [drawn(given, context.random(f"sites {number}")) for number in range(count)]


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of numbers, None where one is missing."""
    return None if any(value is None for value in values) or not values else float(np.mean(values))


def unable(what: str) -> UserError:
    """An error of a setting whose servers form no chain."""
    return UserError(f"{what}: no chain of these servers hosts all blocks; take more servers, or reserve for fewer.")
