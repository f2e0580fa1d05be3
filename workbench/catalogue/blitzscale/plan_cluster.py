"""A cluster of equal hosts below leaf switches: which accelerators hold a model, and which are spare."""

from typing import Any, NamedTuple

from workbench.errors import UserError
from workbench.scaling.policy.chain_plan import Holder, Spare

OTHER = "serves other models"
HOST_COPY = "host copy"
IN_MEMORY = -1
"""Place of a copy in a host's memory, which is on no accelerator."""


class Shape(NamedTuple):
    """What a cluster looks like.

    Attributes:
        hosts, accelerators: of the cluster, and of each host.
        hosts_per_leaf: below one leaf switch.
        domain: accelerators of a scale-up domain.
        slow_hosts: the last so many hosts have cards half as fast.
        bytes_per_s: of a card, one an accelerator.
    """

    hosts: int
    accelerators: int
    hosts_per_leaf: int
    domain: int
    slow_hosts: int
    bytes_per_s: float

    def leaf(self, host: int) -> int:
        """Number of the leaf switch above a host."""
        return host // self.hosts_per_leaf

    def card(self, host: int) -> float:
        """Bytes per second of one of a host's cards."""
        return self.bytes_per_s / (2.0 if host >= self.hosts - self.slow_hosts else 1.0)

    def domain_of(self, host: int, place: int) -> int:
        """Number of the scale-up domain of an accelerator."""
        return host * -(-self.accelerators // self.domain) + place // self.domain


def laid_out(
    shape: Shape, prefill: int, decode: int, host_copy: bool, kv_share: float
) -> tuple[list[Holder], list[Spare], list[dict[str, Any]]]:
    """Who holds the weights, what is spare, and a row for each accelerator (and for the host copy).

    Instances take one accelerator each and are dealt out over leaf switches in turn; below one they stand beside each
    other. What else is in a scale-up domain with one serves other models. The host copy is on the last host and sends
    over one card. KV takes its share of a prefill instance's way out.

    Raises:
        UserError: fewer accelerators than instances.
    """
    leaves = shape.leaf(shape.hosts - 1) + 1
    free: list[list[tuple[int, int]]] = [[] for _ in range(leaves)]
    for host in range(shape.hosts):
        free[shape.leaf(host)] += [(host, place) for place in range(shape.accelerators)]
    room = shape.hosts * shape.accelerators
    if prefill + decode > room:
        raise UserError(f"{prefill + decode} instances on {room} accelerators; lower one, or raise the other.")
    at: dict[tuple[int, int], tuple[str, str]] = {}
    for role, count in (("prefill", prefill), ("decode", decode)):
        for number in range(count):
            # The leaf whose turn it is, or the next one with room.
            leaf = next(leaf % leaves for leaf in range(number, number + leaves) if free[leaf % leaves])
            at[free[leaf].pop(0)] = (f"{role} {number}", role)
    busy = {shape.domain_of(*place) for place in at}
    holders, spares, rows = [], [], []
    for host in range(shape.hosts):
        for place in range(shape.accelerators):
            domain = shape.domain_of(host, place)
            name, role = at.get((host, place), (f"GPU {host}.{place}", OTHER if domain in busy else "spare"))
            card, leaf = shape.card(host), shape.leaf(host)
            if role == "spare":
                spares.append(Spare(name=name, domain=domain, leaf=leaf, bytes_per_s=card))
            elif role != OTHER:
                card *= 1.0 - (kv_share if role == "prefill" else 0.0)
                holders.append(Holder(name=name, role=role, leaf=leaf, bytes_per_s=card))
            rows.append({"name": name, "host": host, "place": place, "domain": domain, "leaf": leaf, "role": role})
    if host_copy:
        host = shape.hosts - 1
        holders.append(Holder(name=HOST_COPY, role="host", leaf=shape.leaf(host), bytes_per_s=shape.card(host)))
        place = {"name": HOST_COPY, "host": host, "place": IN_MEMORY, "domain": IN_MEMORY}
        rows.append({**place, "leaf": shape.leaf(host), "role": "host"})
    return sorted(holders, key=lambda one: (one.role != "prefill", one.role != "decode")), spares, rows
