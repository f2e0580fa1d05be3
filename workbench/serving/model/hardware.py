"""Pools and paths of weights of real clusters: rates of PCIe, SSD and network cards as software gets them."""

import math

from workbench.errors import InputError
from workbench.profiles import Cluster, HostGroup, Link, Model
from workbench.records import whole
from workbench.serving.model.autoscaling import Pool
from workbench.serving.model.kv_network import Network
from workbench.serving.model.start_up import Multicast, Weights


def pool_on(cluster: Cluster, tp: int = 1, **settings) -> Pool:
    """The places of a uniform cluster, each of `tp` accelerators of one host.

    An instance reads from the storage paths of its own accelerators, which others may share, by way of its memory.

    Parameters:
        cluster: what it is made of.
        tp: accelerators of an instance.
        settings: of `Pool`, in place of what the cluster says.

    Raises:
        InputError: hosts that differ or have fewer accelerators.
    """
    host = _host_of(cluster, tp)
    paths = {path for place in cluster.places[:tp] for path in place.ssds}
    own = float(host.ssd.rate()) * len(paths) if host.ssd else None
    if own and host.pcie:
        own = min(own, _from_memory(host, tp, cluster.name))
    found = {
        "hosts": cluster.hosts,
        "places": host.accelerators // tp,
        "accelerators": tp,
        "ssd_bytes_per_s": host.ssds * float(host.ssd.rate()) if host.ssd else None,
        "ssd_each_bytes_per_s": own,
        "cache_bytes": float(host.host_memory_bytes) if host.host_memory_bytes else math.inf,
    }
    return Pool(**found | settings)


def network_on(cluster: Cluster, tp: int = 1) -> Network:
    """The links between instances of a uniform cluster: an instance has the cards of its accelerators to itself, and a
    host sends out of its memory by all that it has.

    Raises:
        InputError: hosts that differ or have fewer accelerators, or no network card.
    """
    host = _host_of(cluster, tp)
    nic, own = _link(host.nic, "network card", cluster.name), _cards(cluster, tp)
    return Network(
        egress_bytes_per_s=own,
        ingress_bytes_per_s=own,
        host_egress_bytes_per_s=float(nic.rate()) * host.nics,
        latency_s=nic.latency(),
    )


def weights_on(
    model: Model,
    cluster: Cluster,
    tp: int = 1,
    path: str = "tiers",
    schedule: str = "chain",
    blocks: int = 64,
    **settings,
) -> Weights:
    """How the weights of a model reach an instance on a uniform cluster.

    From the host's memory every accelerator of the instance takes its share over its own PCIe link, or over its part of
    the path that it shares with others of the instance; over the network an instance has the cards of its accelerators
    to itself. Rates are achievable ones where they are known.

    Parameters:
        model: whose weights, in its own number format.
        cluster, tp: what an instance is made of.
        path: one of `workbench.serving.policy.SOURCES`.
        schedule, blocks: of a multicast.
        settings: of `Weights`, in place of what the cluster says.

    Raises:
        InputError: a link that no source states, hosts that differ.
    """
    host = _host_of(cluster, tp)
    found = {
        "path": path,
        "bytes": model.weight_bytes,
        "source": f"{model.name} on {cluster.name}",
        "status": "computed",
    }
    if path in ("tiers", "all-cached", "multicast", "chains"):
        found["dram_bytes_per_s"] = _from_memory(host, tp, cluster.name)
    if path == "multicast":
        nic = _link(host.nic, "network card", cluster.name)
        found["multicast"] = Multicast(
            schedule=schedule,
            bytes_per_s=_cards(cluster, tp),
            alpha_s=nic.latency(),
            blocks=blocks,
        )
    if path == "chains":
        inside = host.scale_up is not None and host.accelerators >= 2 * tp  # another instance fits into the host
        found["near_bytes_per_s"] = tp * float(host.scale_up.rate()) if inside else None
        found["layers"] = model.layers
        found["activation_s"] = model.activation_bytes_per_token / _cards(cluster, tp)
    return Weights(**found | settings)


def _from_memory(host: HostGroup, tp: int, name: str) -> float:
    """Bytes/s from a host's memory to `tp` accelerators at a time."""
    together = tp * float(_link(host.pcie, "PCIe link", name).rate())
    if host.pcie_switch is not None:
        switches = -(-tp // host.accelerators_per_pcie_switch)
        together = min(together, switches * float(host.pcie_switch.rate()))
    if host.host_memory is not None:
        together = min(together, float(host.host_memory.rate()))
    return together


def _cards(cluster: Cluster, tp: int) -> float:
    """Bytes/s of the network cards of an instance together."""
    nic = _link(cluster.host.nic, "network card", cluster.name)
    return float(nic.rate()) * len({card for place in cluster.places[:tp] for card in place.nics})


def _host_of(cluster: Cluster, tp: int) -> HostGroup:
    host = cluster.host
    whole(tp, "tp", 1, host.accelerators)
    return host


def _link(link: Link | None, what: str, name: str) -> Link:
    if link is None:
        raise InputError(
            f"cluster {name} has no {what}: no source states one", "choose another cluster, or give a rate"
        )
    return link
