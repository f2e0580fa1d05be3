"""Two bursts close to each other: weights of two models on the same network cards, or more targets of one model."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import polars as pl
import simpy

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.showdown.common import ClusterPar, ModelPar
from workbench.catalogue.spec import Agree, experiment
from workbench.errors import InputError
from workbench.queueing.simulated.clock import Clock
from workbench.transfer.model import Network, uniform_network
from workbench.transfer.simulated.fabric import Fabric
from workbench.transfer.simulated.instants import FLOW_JOINS

TWO, ONE = "two models", "one model"
SHARED, IN_TURN, TAIL = "at once", "in turn", "behind the tail"
WAYS = {TWO: (SHARED, IN_TURN), ONE: (SHARED, IN_TURN, TAIL)}
GAPS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25)
"""Between the bursts, over the time of one multicast."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["waits"].filter(pl.col("backend") == tables["waits"]["backend"][0])
    near = table.sort((pl.col("gap_s") - parameters["gap_s"]).abs(), maintain_order=True)["gap_s"][0]
    table = table.filter(pl.col("gap_s") == near)
    waits = {(row["case"], row["way"], row["burst"]): row["seconds"] for row in table.to_dicts()}
    return (
        f"With bursts of two models {near:.2g} s apart, weights that travel at once are there after "
        f"{waits[TWO, SHARED, 'first']:.3g} s and {waits[TWO, SHARED, 'second']:.3g} s, in turn after "
        f"{waits[TWO, IN_TURN, 'first']:.3g} s and {waits[TWO, IN_TURN, 'second']:.3g} s; more instances of the same "
        f"model behind the tail of the chain have theirs {waits[ONE, TAIL, 'second']:.3g} s after they were asked for."
    )


@experiment(
    "showdown/two-bursts",
    title="Two bursts close together",
    question="How long do weights take when two models burst at nearly the same time over shared network cards, or the "
    "same model again in the middle of its multicast?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.02, "simpy": 3.0},
    draw="showdown_costs.two_bursts",
    panels=(TWO, ONE),
    say=_say,
    agrees=(
        Agree(
            "weights there",
            "waits",
            ("case", "way", "burst", "gap_s"),
            "seconds",
            {("analytic", "simpy"): (-0.03, 0.03)},
        ),
    ),
)
def two_bursts(
    context: Context,
    *,
    cluster: ClusterPar = "blitzscale-a",
    model: ModelPar = "llama-3-8b",
    targets: Annotated[int, Par("Instances that each burst starts", low=1, high=16, step=1, source="chosen")] = 4,
    blocks: Annotated[int, Par("Blocks", low=16, high=512, log=True, source="chosen: small beside the model")] = 128,
    gap_s: Annotated[
        float, Par("Between the bursts", "s", low=0, high=10, step=0.1, source="chosen: within the first multicast")
    ] = 0.5,
) -> dict[str, pl.DataFrame]:
    """Seconds from each burst until its last instance has its weights.

    Each burst sends by a chain. *Two models*: their instances share hosts, and each host's network card; the chains
    run at once and share it fairly, or the second waits for the first. *One model*: the second chain begins at the
    same source at once, or after the first one, or goes on behind the tail of the first, whose way out is free.

    Formula: with T for one chain alone, two that share a card from a gap Δ < T on both take 2 T - Δ; in turn, the first
    takes T and the second the same 2 T - Δ; behind the tail both take T, once a block has come so far. Shares change at
    ends of chains here, of blocks in the simulation, so that few blocks part the two.
    """  # fmt: skip
    hosts, shape = context.cluster(cluster), context.model(model)
    if hosts.host.nic is None:
        raise InputError(f"{hosts.name} states no network card", "choose another cluster", field="cluster")
    rate = context.cite("network card", float(hosts.host.nic.rate()), "bytes/s", "computed", hosts.name)
    alone_s = shape.weight_bytes / rate * (blocks + targets - 1) / blocks
    context.cite("one chain alone", alone_s, "s", "computed", "blocks in a pipeline")
    rows = []
    for gap in sorted({*(alone_s * share for share in GAPS), gap_s}):
        for case, ways in WAYS.items():
            for way in ways:
                context.check()
                if context.backend == "analytic":
                    found = _formula(way, alone_s, gap, targets * shape.weight_bytes / rate / blocks)
                else:
                    found = _simulated(case, way, gap, targets, blocks, shape.weight_bytes, rate, alone_s)
                for burst, seconds in zip(("first", "second"), found, strict=True):
                    rows.append({"case": case, "way": way, "burst": burst, "gap_s": gap, "seconds": seconds})
    known = [(f"{row['case']}, {row['way']}, {row['burst']}", row["gap_s"], row["seconds"], "s") for row in rows]
    return {"waits": pl.DataFrame(rows), "headline": headline(known)}


def _formula(way: str, alone_s: float, gap_s: float, first_block_s: float) -> tuple[float, float]:
    """Seconds of both bursts; `first_block_s` is when the tail of the first chain has a block to pass on."""
    later_s = alone_s + max(0.0, alone_s - gap_s)
    behind_s = alone_s + max(0.0, first_block_s - gap_s)
    return {SHARED: (later_s, later_s), IN_TURN: (alone_s, later_s), TAIL: (alone_s, behind_s)}[way]


def _simulated(
    case: str, way: str, gap_s: float, targets: int, blocks: int, weight_bytes: float, rate: float, alone_s: float
) -> tuple[float, float]:
    """Seconds until the last target of the first chain, and of the second one from its burst on."""
    if case == TWO:  # nodes 0, 2, ... are of the first model, 1, 3, ... of the second one on the same hosts
        network = uniform_network(
            2 * (targets + 1), rate, accelerators_per_host=2, accelerators_per_nic=2, local_bytes_per_s=10 * rate
        )  # fmt: skip
        first, second = [list(range(k, 2 * (targets + 1), 2)) for k in (0, 1)]
    else:
        network = uniform_network(2 * targets + 1, rate)
        first = list(range(targets + 1))
        second = [first[-1] if way == TAIL else 0, *range(targets + 1, 2 * targets + 1)]
    chains = _Chains(network, weight_bytes / blocks, blocks, {first[0], 0 if case == ONE else second[0]})
    chains.start(first, 0.0)
    chains.start(second, max(gap_s, alone_s) if way == IN_TURN else gap_s)
    chains.clock.run()
    return chains.ready_s[first[-1]], chains.ready_s[second[-1]] - gap_s


class _Chains:
    """Chains of nodes that pass blocks on, on one fabric.

    Attributes:
        ready_s: node -> when it had all blocks.
    """

    def __init__(self, network: Network, block_bytes: float, blocks: int, sources: set[int]):
        self.clock = Clock()
        names = [resource.name for resource in network.resources]
        self._fabric = Fabric(self.clock, [resource.bytes_per_s for resource in network.resources], names)
        self._network, self._block_bytes = network, block_bytes
        self._held = {node: [self.clock.event() for _ in range(blocks)] for node in range(network.nodes)}
        self.ready_s: dict[int, float] = {}
        for node in sources:
            for event in self._held[node]:
                event.succeed()

    def start(self, chain: list[int], start_s: float) -> None:
        """Let each node of a chain pass blocks on to the next from some time on."""
        for source, target in itertools.pairwise(chain):
            self.clock.process(self._hop(source, target, start_s))

    def _hop(self, source: int, target: int, start_s: float) -> Iterator[simpy.Event]:
        yield self.clock.at(start_s, FLOW_JOINS)
        for block, there in enumerate(self._held[source]):
            if not there.processed:
                yield there
            labels = (source, target, block, "", "")
            path = self._network.path(source, target)
            yield self._fabric.start(path, self._block_bytes, "weights", labels).ended
            self._held[target][block].succeed()
        self.ready_s[target] = self.clock.now
