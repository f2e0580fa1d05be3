"""What transfer experiments share: the cost of a cluster's links, with its sources."""

from typing import Annotated

from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.errors import InputError
from workbench.profiles import Cluster
from workbench.records import Quantity
from workbench.transfer.model import Hockney

Rate = Annotated[
    str,
    Par(
        "Link speed",
        choices=("achievable", "nominal"),
        source="achievable: what software got, with its overhead per step; nominal: the data sheet's rate, no overhead",
    ),
]


def link_cost(context: Context, cluster: Cluster, rate: str = "achievable", nodes: int = 0) -> Hockney:
    """α and B of the links between the hosts of a cluster, entered into the ledger.

    Parameters:
        context, cluster: where they are entered, and whose links they are.
        rate: "achievable", with the overhead per message, or "nominal", without; where a profile states only the other
            rate (a measured machine has no nominal one) that one is taken, and the ledger says so.
        nodes: how many hosts the experiment supposes; more than the cluster has is noted in the ledger.

    Raises:
        InputError: the cluster states no rate of its network card.
    """
    nic = cluster.nic
    if nodes > cluster.hosts:
        note = f"the cluster has {cluster.hosts}; more of the same kind are supposed"
        context.cite(f"{cluster.name} hosts", nodes, "1", "chosen", note)
    taken, value = _stated(cluster, rate)
    context.cite(f"{cluster.name} network card, {taken}", value)
    alpha_s = 0.0
    if rate == "achievable" and nic.latency_s is not None:
        alpha_s = context.cite(f"{cluster.name} overhead per message", nic.latency_s)
    return Hockney(alpha_s=alpha_s, bytes_per_s=float(value))


def _stated(cluster: Cluster, rate: str) -> tuple[str, Quantity]:
    nic = cluster.nic
    stated = {"achievable": nic.achievable_bytes_per_s, "nominal": nic.nominal_bytes_per_s}
    for name in (rate, "achievable", "nominal"):
        if stated[name] is not None:
            return name, stated[name]
    raise InputError(
        f"cluster {cluster.name} states no rate of its network card", "give one, or choose another cluster"
    )
