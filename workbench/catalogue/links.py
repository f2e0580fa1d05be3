"""What transfer experiments share: the cost of a cluster's links, with its sources."""

from typing import Annotated

from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.errors import InputError
from workbench.profiles import Cluster
from workbench.transfer.model import Hockney

Rate = Annotated[
    str,
    Par(
        "Link speed",
        choices=("achievable", "nominal"),
        source="achievable: what software got, with its overhead per step; nominal: the data sheet's rate, no overhead",
    ),
]


def link_cost(context: Context, cluster: Cluster, rate: str = "achievable") -> Hockney:
    """α and B of the links between the hosts of a cluster, entered into the ledger."""
    nic, name = cluster.nic, f"{cluster.name} NIC"
    if rate == "nominal":
        return Hockney(bytes_per_s=context.cite(f"{name}, nominal", nic.nominal_bytes_per_s))
    if nic.achievable_bytes_per_s is None:
        raise InputError(
            f"cluster {cluster.name} has no achievable rate of its network card", "choose the nominal link speed"
        )
    alpha_s = 0.0 if nic.latency_s is None else context.cite(f"{name}, overhead per message", nic.latency_s)
    return Hockney(alpha_s=alpha_s, bytes_per_s=context.cite(f"{name}, achievable", nic.achievable_bytes_per_s))
