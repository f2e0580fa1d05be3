"""Times of the collectives that multicast is compared with, in Hockney's model.

n nodes, S bytes, α seconds a message, B bytes/s a link. Ring forms: Thakur, Rabenseifner and Gropp 2005. All give
seconds for `total_bytes` S, `nodes` n and a `cost` of Hockney's model, and an `InputError` for anything else.
"""

from workbench.records import positive
from workbench.transfer.model.cost import Hockney, only_hockney
from workbench.transfer.policy import check_size, log2_ceiling


def send_receive_s(total_bytes: float, cost: Hockney) -> float:
    """One message between two nodes: α + S/B."""
    return only_hockney(cost).travel_s(positive(total_bytes, "total_bytes"))


def ring_all_gather_s(total_bytes: float, nodes: int, cost: Hockney) -> float:
    """All nodes end with all n shares of S/n bytes: (n-1)(α + S/(nB)); S is the size after gathering."""
    total_bytes, nodes, cost = _checked(total_bytes, nodes, cost)
    return (nodes - 1) * cost.travel_s(total_bytes / nodes)


def ring_all_reduce_s(total_bytes: float, nodes: int, cost: Hockney) -> float:
    """Reduce-scatter and all-gather round a ring: 2(n-1)(α + S/(nB))."""
    return 2 * ring_all_gather_s(total_bytes, nodes, cost)


def recursive_doubling_all_gather_s(total_bytes: float, nodes: int, cost: Hockney) -> float:
    """All-gather in ⌈log2 n⌉ messages of doubling size: ⌈log2 n⌉α + (n-1)S/(nB)."""
    total_bytes, nodes, cost = _checked(total_bytes, nodes, cost)
    return log2_ceiling(nodes) * cost.alpha_s + (nodes - 1) * total_bytes / (nodes * cost.bytes_per_s)


def scatter_all_gather_broadcast_s(total_bytes: float, nodes: int, cost: Hockney) -> float:
    """Broadcast as a binomial scatter and a ring all-gather: (⌈log2 n⌉ + n - 1)α + 2(n-1)S/(nB)."""
    total_bytes, nodes, cost = _checked(total_bytes, nodes, cost)
    wire_s = 2 * (nodes - 1) * total_bytes / (nodes * cost.bytes_per_s)
    return (log2_ceiling(nodes) + nodes - 1) * cost.alpha_s + wire_s


def _checked(total_bytes: float, nodes: int, cost: Hockney) -> tuple[float, int, Hockney]:
    return positive(total_bytes, "total_bytes"), check_size(nodes, 1)[0], only_hockney(cost)
