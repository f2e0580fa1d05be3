"""What a transfer runs over: resources with a capacity per direction, and the path from one node to another."""

from typing import NamedTuple

import numpy as np
import polars as pl
from pydantic import model_validator

from workbench.errors import InputError, UserError
from workbench.records import Asked, NotNegative, Positive, positive
from workbench.transfer.policy import Schedule, check_columns


class Resource(Asked):
    """Something that flows share, in one direction.

    Attributes:
        name: unique in its network, such as "nic 3 out".
        kind: scale-up, pcie, copy, pcie switch, host memory, nic, leaf or link.
        bytes_per_s: capacity.
    """

    name: str
    kind: str
    bytes_per_s: Positive


class Endpoint(NamedTuple):
    """Where a node sits and what its transfers hold; all tuples hold indices of resources, in path order.

    Attributes:
        name: for people.
        host, leaf: nodes of one host reach each other without a NIC, hosts of one leaf without its uplink.
        local_out, local_in: held by transfers to and from nodes of the same host.
        remote_out, remote_in: held by transfers that leave or enter the host.
        domain: inside a host, nodes of different domains (PCIe switches) also hold `domain_out` and `domain_in`.
        memory: whether this is a host's memory; its transfers inside the host hold the other end's `memory_out` or
            `memory_in` in place of the local resources.
    """

    name: str
    host: int
    leaf: int
    local_out: tuple[int, ...] = ()
    local_in: tuple[int, ...] = ()
    remote_out: tuple[int, ...] = ()
    remote_in: tuple[int, ...] = ()
    domain: int = 0
    domain_out: tuple[int, ...] = ()
    domain_in: tuple[int, ...] = ()
    memory: bool = False
    memory_out: tuple[int, ...] = ()
    memory_in: tuple[int, ...] = ()


class Network(Asked):
    """Nodes, the resources between them, and the overhead of a message.

    Attributes:
        resources: everything that can be shared.
        endpoints: one per node, in the schedule's numbering.
        leaf_out, leaf_in: per leaf, the uplink's two directions; empty tuples where the leaf never limits.
        links: (source, target, resource): a directed pair's own resource, held on top of the path (a slow link).
        alpha_s, local_alpha_s: overhead per message between hosts and inside one.
    """

    resources: tuple[Resource, ...]
    endpoints: tuple[Endpoint, ...]
    leaf_out: tuple[tuple[int, ...], ...] = ((),)
    leaf_in: tuple[tuple[int, ...], ...] = ((),)
    links: tuple[tuple[int, int, int], ...] = ()
    alpha_s: NotNegative = 0.0
    local_alpha_s: NotNegative = 0.0

    @model_validator(mode="after")
    def _indices_exist(self):
        """The simulation shares resources by their index, unchecked."""
        places = [place for end in self.endpoints for place in end if isinstance(place, tuple)]
        places += [*self.leaf_out, *self.leaf_in, tuple(resource for *_, resource in self.links)]
        for index in (index for place in places for index in place):
            if not 0 <= index < len(self.resources):
                raise ValueError(f"names resource {index} of {len(self.resources)}; number resources from 0")
        for node in (node for *ends, _ in self.links for node in ends):
            if not 0 <= node < self.nodes:
                raise ValueError(f"has a link with node {node} of {self.nodes}; number nodes from 0")
        for end in self.endpoints:
            if not 0 <= end.leaf < min(len(self.leaf_out), len(self.leaf_in)):
                raise ValueError(f"puts {end.name!r} on leaf {end.leaf}, which has no uplinks; list them for each leaf")
        return self

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.endpoints)

    def local(self, source: int, target: int) -> bool:
        """Whether two nodes are in the same host."""
        return self.endpoints[source].host == self.endpoints[target].host

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """Indices of all resources that a transfer holds while it runs, in order."""
        start, end = self.endpoints[source], self.endpoints[target]
        own = tuple(resource for one, other, resource in self.links if (one, other) == (source, target))
        if start.host != end.host:
            across: tuple[int, ...] = ()
            if start.leaf != end.leaf:
                across = self.leaf_out[start.leaf] + self.leaf_in[end.leaf]
            return start.remote_out + own + across + end.remote_in
        if start.memory or end.memory:
            leaves = start.local_out if start.memory else start.memory_out
            return leaves + own + (end.local_in if end.memory else end.memory_in)
        if start.domain != end.domain:
            own = start.domain_out + own + end.domain_in
        return start.local_out + own + end.local_in

    def overhead_s(self, source: int, target: int) -> float:
        """Overhead of one message between two nodes, in seconds."""
        return self.local_alpha_s if self.local(source, target) else self.alpha_s

    def alone_bytes_per_s(self, source: int, target: int) -> float:
        """Bandwidth of the path when nobody else is on it: that of its tightest resource."""
        return min((self.resources[index].bytes_per_s for index in self.path(source, target)), default=float("inf"))

    def transfer_seconds(self, schedule: Schedule, block_bytes: float | np.ndarray) -> np.ndarray:
        """Seconds of each transfer of a schedule when nobody else is on its path, float (transfers,).

        Parameters:
            schedule: at most as many nodes as the network has.
            block_bytes: size of every block, or one size a block.
        """
        self.require(schedule)
        sizes = block_sizes(schedule, block_bytes)
        pairs = list(zip(schedule.source.tolist(), schedule.target.tolist(), strict=True))
        speed = {pair: (self.overhead_s(*pair), self.alone_bytes_per_s(*pair)) for pair in set(pairs)}
        alpha, rate = np.array([speed[pair] for pair in pairs]).reshape(-1, 2).T
        return alpha + sizes[schedule.block] / rate

    def ports(self, schedule: Schedule) -> np.ndarray:
        """Port of each transfer: 0 for transfers between hosts, 1 inside a host, which has a fabric of its own."""
        self.require(schedule)
        pairs = zip(schedule.source.tolist(), schedule.target.tolist(), strict=True)
        return np.array([int(self.local(*pair)) for pair in pairs], dtype=np.int64)

    def require(self, schedule: Schedule) -> None:
        """Refuse a schedule that names what does not exist, or has more nodes than the network."""
        check_columns(schedule)
        if schedule.nodes > self.nodes:
            raise UserError(
                f"Schedule {schedule.name!r} has {schedule.nodes} nodes but the network only {self.nodes}; "
                "take fewer nodes or a larger network."
            )

    def table(self) -> pl.DataFrame:
        """All resources, one row each: `name, kind, bytes_per_s`."""
        return pl.DataFrame([resource.model_dump() for resource in self.resources])


def block_sizes(schedule: Schedule, block_bytes: float | np.ndarray) -> np.ndarray:
    """Bytes of each block of a schedule, float (blocks,), from one size for all or one a block.

    Raises:
        `InputError` for another number of sizes, or one that is not above 0.
    """
    sizes = np.asarray(block_bytes)
    if sizes.dtype.kind not in "iuf" or sizes.shape not in ((), (1,), (schedule.blocks,)):
        remedy = f"give one number, or one for each of the {schedule.blocks} blocks"
        raise InputError(f"has the shape {sizes.shape} of {sizes.dtype}", remedy, field="block_bytes")
    for size in np.unique(sizes).tolist():
        positive(size, "block_bytes")
    return np.broadcast_to(sizes.astype(float), schedule.blocks)
