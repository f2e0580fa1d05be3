"""The half hour of BurstGPT as λScale's artifact replays it, by five systems: what Figures 10 and 11 share."""

import functools
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from workbench import workloads
from workbench.catalogue.context import Context
from workbench.catalogue.lambdascale.replaying import IDEAL, Rules, batches, run_on
from workbench.catalogue.lambdascale.systems import LAMBDASCALE, SERVERLESSLLM, SYSTEMS, World, world
from workbench.catalogue.parameters import Par
from workbench.catalogue.tracing import BURST
from workbench.serving import Run

SPEEDS = {"7B": 6.0, "13B": 3.0, "70B": 1.5}
"""The artifact divides the gaps by this (test/sender.py)."""

ALL = (IDEAL, *SYSTEMS)
SIMULATED = {"quick": 1, "full": 2}
"""Reconstructions that SimPy replays, to lay beside the compiled engine."""

WITH_MEMORY = (LAMBDASCALE, SERVERLESSLLM)
"""Systems that load from host memory; NCCL and FaaSNet take a remote GPU's copy or the SSD (MLSys'26 paper §7.4)."""

_RULES = "artifact controller.py"
Reconstructions = Annotated[
    int,
    Par(
        "Reconstructions of the trace",
        low=1,
        high=40,
        free=True,
        source="10: chosen; each has the published arrivals of every minute, and gap CV and peaks to 1.2 %",
    ),
]
Tick = Annotated[
    float,
    Par(
        "Between two decisions",
        "s",
        low=0.1,
        high=5.0,
        step=0.1,
        status="published",
        source=f"{_RULES}: 1 s",
    ),
]
TickWithMemory = Annotated[
    float,
    Par(
        "Between two decisions, 7B and 13B with host memory",
        "s",
        low=0.1,
        high=5.0,
        step=0.1,
        status="published",
        source=f"{_RULES}: 0.5 s",
    ),
]
KeepInMemory = Annotated[
    float,
    Par(
        "Host memory keeps unused weights for",
        "s",
        low=0.0,
        high=300.0,
        step=1.0,
        status="published",
        source="MLSys'26 paper §2.3: 15 s in its study of traces; not said for the runs of §7.4",
    ),
]
Pinned = Annotated[
    int,
    Par(
        "Hosts whose memory always keeps λScale's weights",
        low=0,
        high=12,
        status="published",
        source="artifact store_manager.py: nodes 1 and 2 do not drop them in λScale's mode",
    ),
]
Senders = Annotated[
    bool,
    Par(
        "λScale's hosts send what they have in memory",
        status="published",
        source="MLSys'26 paper §5: any complete copy in registered GPU or host memory; the artifact reads SSDs instead",
    ),
]


Tokens = Annotated[
    int,
    Par("Tokens that each prompt makes", low=8, high=512, status="published", source="artifact: 64 new tokens at most"),
]


class Settings(NamedTuple):
    """How the trace is replayed; see the parameters of the same names."""

    reconstructions: int
    tick_s: float
    memory_tick_s: float
    keep_s: float
    pinned: int
    hosts_send: bool
    overhead_s: float
    tokens: int


class Replay(NamedTuple):
    """One run of one system on one reconstruction."""

    reconstruction: int
    one: World
    system: str
    run: Run


def worlds(
    context: Context, cluster: str, large_cluster: str, nodes: int, large_nodes: int, nccl: str, tree_rate: float
) -> list[World]:
    """7B, 13B and 70B on their clusters."""
    small = [world(context, label, cluster, nodes, nccl, tree_rate) for label in ("7B", "13B")]
    return [*small, world(context, "70B", large_cluster, large_nodes, nccl, tree_rate)]


def replays(context: Context, found: list[World], settings: Settings) -> Iterator[Replay]:
    """Every system on every reconstruction of the trace, for every model."""
    context.traces.append(f"{BURST}-like")
    why = "reconstructed from the arrivals of every minute and four statistics of artifact test/trace_0.txt"
    count = settings.reconstructions
    if context.backend == "simpy":
        count = min(SIMULATED[context.mode], count)
    context.cite(f"reconstructions of {BURST}", count, "1", "computed", why)
    for number in range(count):
        for one in found:
            arrival = arrivals(context.seed + number, SPEEDS[one.label])
            table = batches(arrival, settings.tokens)
            for system in ALL:
                context.tell(f"{one.label}, {system}, reconstruction {number + 1} of {count}")
                run = run_on(context, one, system, rules(one, system, settings), table)
                yield Replay(number, one, system, run)


def rules(one: World, system: str, settings: Settings) -> Rules:
    """How a system scales in the replay; one replica is there at first."""
    memory = system in WITH_MEMORY
    return Rules(
        replicas=1,
        tick_s=settings.memory_tick_s if memory and one.gpus == 1 else settings.tick_s,
        cache_s=settings.keep_s if memory else None,
        overhead_s=settings.overhead_s,
        pinned=min(settings.pinned, one.nodes) if system == LAMBDASCALE else 0,
        hosts_send=settings.hosts_send,
    )


def arrivals(seed: int, speed: float) -> np.ndarray:
    """Arrivals of a reconstruction as they are replayed: cut to whole seconds, then gaps divided, float64[498]."""
    return np.floor(_reconstructed(seed)) / speed


@functools.lru_cache(maxsize=64)
def _reconstructed(seed: int) -> np.ndarray:
    return workloads.trace(f"{BURST}-like", seed=seed).requests["arrival_s"].to_numpy()
