"""The network of a cluster profile: which resources the accelerators, hosts and host memories of a cluster share."""

from collections.abc import Sequence
from typing import Literal

from workbench.errors import InputError, UserError
from workbench.profiles.cluster_places import Place
from workbench.profiles.cluster_record import Cluster, HostGroup
from workbench.profiles.link_record import Link
from workbench.transfer.model.network import Endpoint, Network
from workbench.transfer.model.uniform import Resources


def network_of(
    cluster: Cluster,
    nodes: int | Sequence[int | str] | None = None,
    per: Literal["accelerator", "host"] = "accelerator",
    achievable: bool = True,
) -> Network:
    """The network among nodes of a cluster.

    Between hosts a transfer holds the accelerator's PCIe lanes, its NIC, the leaf uplink where the leaves differ, and
    the same on the other side; inside a host the scale-up ports, or PCIe lanes (and the switches' uplinks where the
    switches differ). A host memory holds its own bandwidth and the PCIe switch and lanes of the accelerator it feeds,
    and sends to other hosts through the NIC of its host's first accelerator. An accelerator with several NICs uses
    them as one.

    Parameters:
        cluster: the profile.
        nodes: how many (the first ones), or which: indices of accelerators or of hosts as `per` says, and "memory 0"
            for the memory of host 0; all by default. The order is the schedule's numbering.
        per: whether a node is one accelerator with its share of NICs, or a host with all its NICs together.
        achievable: what software gets, or the data sheet's numbers with no overhead.

    Raises:
        `InputError` for a cluster without NICs where the nodes lie in several hosts, `UserError` for unknown nodes.
    """
    count = cluster.accelerators if per == "accelerator" else cluster.hosts
    chosen = list(range(count if nodes is None else nodes)) if nodes is None or isinstance(nodes, int) else list(nodes)
    builder = _Builder(cluster, achievable)
    endpoints = []
    for node in chosen:
        if isinstance(node, int) and 0 <= node < count:
            endpoints.append(builder.accelerator(node) if per == "accelerator" else builder.whole_host(node))
        elif isinstance(node, str) and per == "accelerator" and node in builder.memories:
            endpoints.append(builder.memory(builder.memories.index(node)))
        else:
            kind = f"an {per}" if per == "accelerator" else "a host"
            raise UserError(f"Cluster {cluster.name} has no node {node!r}; give {kind} from 0 to {count - 1}.")
    hosts = {endpoint.host for endpoint in endpoints}
    if len(hosts) > 1 and not all(builder.has_nic(host) for host in hosts):
        raise InputError(
            f"cluster {cluster.name} has no network card: no source states one",
            "choose nodes of one host, another cluster, or give nic_bytes_per_s",
        )
    return builder.network(endpoints)


class _Builder:
    def __init__(self, cluster: Cluster, achievable: bool):
        self.cluster, self.which = cluster, "achievable" if achievable else "nominal"
        self.resources = Resources()
        self.hosts: list[list[Place]] = [[] for _ in range(cluster.hosts)]
        for place in cluster.places:
            self.hosts[place.host].append(place)
        self.memories = [f"memory {host}" for host in range(cluster.hosts)]

    def _rate(self, link: Link | None, times: int = 1) -> float | None:
        return None if link is None else float(link.rate(self.which)) * times

    def _group(self, place: Place) -> HostGroup:
        return self.cluster.groups[place.group]

    def _nic(self, nics: tuple[int, ...], link: Link | None):
        if not nics:
            return (), ()
        name = f"nic {nics[0]}" if len(nics) == 1 else f"nics {nics[0]} to {nics[-1]}"
        return self.resources.pair(name, "nic", self._rate(link, len(nics)))

    def has_nic(self, host: int) -> bool:
        """Whether a source states how the host reaches others."""
        return self._group(self.hosts[host][0]).nic is not None

    def _bus(self, place: Place):
        """The accelerator's PCIe lanes, and its copies over them, which software may leave slower than RDMA.

        The lanes carry at least what the NIC gets through them, whatever rate was measured for copies.
        """
        group = self._group(place)
        copies = self._rate(group.pcie)
        if copies is None:
            return ((), ()), ((), ())
        carried = max(copies, self._rate(group.nic, len(place.nics)) or 0.0)
        lanes = self.resources.pair(f"accelerator {place.accelerator} pcie", "pcie", carried)
        slower = copies if copies < carried else None
        return lanes, self.resources.pair(f"accelerator {place.accelerator} copy", "copy", slower)

    def _switch(self, place: Place):
        rate = self._rate(self._group(place).pcie_switch)
        return self.resources.pair(f"pcie switch {place.pcie_switch}", "pcie switch", rate)

    def accelerator(self, index: int) -> Endpoint:
        place = self.cluster.places[index]
        group = self._group(place)
        (lane_out, lane_in), (copy_out, copy_in) = self._bus(place)
        nic_out, nic_in = self._nic(place.nics, group.nic)
        switch_out, switch_in = across = self._switch(place)
        local_out, local_in, domain = copy_out + lane_out, lane_in + copy_in, place.pcie_switch
        if group.scale_up is not None:
            rate = self._rate(group.scale_up)
            local_out, local_in = self.resources.pair(f"accelerator {index} scale-up", "scale-up", rate)
            domain, across = 0, ((), ())
        return Endpoint(
            f"accelerator {index}",
            place.host,
            place.leaf,
            local_out,
            local_in,
            lane_out + nic_out,
            nic_in + lane_in,
            domain,
            *across,
            memory_out=copy_out + lane_out + switch_out,
            memory_in=switch_in + lane_in + copy_in,
        )

    def whole_host(self, host: int) -> Endpoint:
        place = self.hosts[host][0]
        nics = tuple(dict.fromkeys(nic for other in self.hosts[host] for nic in other.nics))
        return Endpoint(f"host {host}", host, place.leaf, (), (), *self._nic(nics, self._group(place).nic))

    def memory(self, host: int) -> Endpoint:
        place = self.hosts[host][0]
        group = self._group(place)
        out, into = self.resources.pair(f"host {host} memory", "host memory", self._rate(group.host_memory))
        nic_out, nic_in = self._nic(place.nics, group.nic)
        return Endpoint(self.memories[host], host, place.leaf, out, into, out + nic_out, nic_in + into, memory=True)

    def network(self, endpoints: list[Endpoint]) -> Network:
        uplinks = [
            self.resources.pair(f"leaf {leaf.name}", "leaf", self._rate(leaf.uplink)) for leaf in self.cluster.leaves
        ]
        nics = [group.nic for group in self.cluster.groups if group.nic is not None]
        inside = [group.scale_up or group.pcie for group in self.cluster.groups]
        return Network(
            resources=tuple(self.resources.all),
            endpoints=tuple(endpoints),
            leaf_out=tuple(out for out, _ in uplinks),
            leaf_in=tuple(into for _, into in uplinks),
            alpha_s=max((nic.latency(self.which) for nic in nics), default=0.0),
            local_alpha_s=max((link.latency(self.which) for link in inside if link is not None), default=0.0),
        )
