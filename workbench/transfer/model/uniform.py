"""A network from a handful of numbers: equal nodes, with whatever is unequal named."""

from collections.abc import Mapping

from workbench.errors import UserError
from workbench.records import positive, whole
from workbench.transfer.model.network import Endpoint, Network, Resource
from workbench.transfer.policy.schedule import MOST_NODES


class Resources:
    """Collects resources while a network is being built and hands out their indices."""

    def __init__(self) -> None:
        self.all: list[Resource] = []
        self._index: dict[str, int] = {}

    def pair(self, name: str, kind: str, bytes_per_s: float | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Both directions of a resource as one-element paths; two empty paths where it never limits (None)."""
        if bytes_per_s is None:
            return (), ()
        return (self.one(f"{name} out", kind, bytes_per_s),), (self.one(f"{name} in", kind, bytes_per_s),)

    def one(self, name: str, kind: str, bytes_per_s: float) -> int:
        """Index of a resource, made on its first mention."""
        if name not in self._index:
            self._index[name] = len(self.all)
            self.all.append(Resource(name=name, kind=kind, bytes_per_s=bytes_per_s))
        return self._index[name]


def uniform_network(
    nodes: int,
    bytes_per_s: float,
    alpha_s: float = 0.0,
    *,
    node_bytes_per_s: Mapping[int, float] | None = None,
    slow_links: Mapping[tuple[int, int], float] | None = None,
    accelerators_per_host: int = 1,
    accelerators_per_nic: int = 1,
    local_bytes_per_s: float | None = None,
    local_alpha_s: float = 0.0,
    hosts_per_leaf: int | None = None,
    uplink_bytes_per_s: float | None = None,
) -> Network:
    """A network of like nodes; every capacity counts per direction.

    Parameters:
        nodes: number of nodes (accelerators, or hosts with one each).
        bytes_per_s: bandwidth of each NIC.
        alpha_s: overhead per message between hosts.
        node_bytes_per_s: NICs of single nodes that are faster or slower.
        slow_links: (source, target) -> bandwidth of that directed link alone.
        accelerators_per_host: how many nodes share a host.
        accelerators_per_nic: how many of a host's nodes share one NIC.
        local_bytes_per_s, local_alpha_s: each node's port inside the host; needed when hosts have several nodes.
        hosts_per_leaf, uplink_bytes_per_s: leaf switches and the uplink of each; by default one leaf that never limits.

    Raises:
        `UserError` for numbers that do not fit together, `InputError` for bandwidths that are none.

    >>> network = uniform_network(4, 12.5e9, slow_links={(0, 1): 1e9})
    >>> [network.resources[index].name for index in network.path(0, 1)]
    ['nic 0 out', 'link 0 to 1', 'nic 1 in']
    """
    nodes, bytes_per_s = whole(nodes, "nodes", 1, MOST_NODES), positive(bytes_per_s, "bytes_per_s")
    _check_groups(nodes, accelerators_per_host, accelerators_per_nic, local_bytes_per_s, hosts_per_leaf)
    if node_bytes_per_s and accelerators_per_nic > 1:
        raise UserError("node_bytes_per_s needs a NIC per node; leave it out or set accelerators_per_nic to 1.")
    resources, speeds, endpoints = Resources(), dict(node_bytes_per_s or {}), []
    for node in range(nodes):
        host, local = divmod(node, accelerators_per_host)
        nic = node if accelerators_per_nic == 1 else f"{host}.{local // accelerators_per_nic}"
        remote = resources.pair(f"nic {nic}", "nic", speeds.pop(node, bytes_per_s))
        inside = ((), ())
        if accelerators_per_host > 1:
            inside = resources.pair(f"accelerator {node}", "scale-up", local_bytes_per_s)
        leaf = host // hosts_per_leaf if hosts_per_leaf else 0
        endpoints.append(Endpoint(f"node {node}", host, leaf, *inside, *remote))
    uplinks = [resources.pair(f"leaf {leaf}", "leaf", uplink_bytes_per_s) for leaf in range(endpoints[-1].leaf + 1)]
    links = []
    for (source, target), capacity in (slow_links or {}).items():
        _check_node(source, nodes)
        _check_node(target, nodes)
        links.append((source, target, resources.one(f"link {source} to {target}", "link", capacity)))
    for node in speeds:
        _check_node(node, nodes)
    return Network(
        resources=tuple(resources.all),
        endpoints=tuple(endpoints),
        leaf_out=tuple(out for out, _ in uplinks),
        leaf_in=tuple(into for _, into in uplinks),
        links=tuple(links),
        alpha_s=alpha_s,
        local_alpha_s=local_alpha_s,
    )


def _check_groups(nodes: int, per_host: int, per_nic: int, local_bytes_per_s: float | None, per_leaf: int | None):
    whole(per_host, "accelerators_per_host", 1), whole(per_nic, "accelerators_per_nic", 1)
    if nodes % per_host:
        raise UserError(f"{nodes} nodes do not fill hosts of {per_host}; make nodes a multiple of it.")
    if per_host % per_nic:
        raise UserError(f"{per_nic} accelerators per NIC do not divide {per_host} per host; change either.")
    if per_host > 1 and local_bytes_per_s is None:
        raise UserError(
            "Hosts with several nodes need local_bytes_per_s, each node's bandwidth inside its host; add it."
        )
    if per_leaf is not None:
        whole(per_leaf, "hosts_per_leaf", 1)


def _check_node(node: int, nodes: int) -> None:
    if not (isinstance(node, int) and 0 <= node < nodes):
        raise UserError(f"There is no node {node!r} among {nodes}; nodes count from 0.")
