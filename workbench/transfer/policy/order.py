"""Who comes first: the node order for chains over unequal links."""

from collections.abc import Sequence

from workbench.records import positive, whole


def by_bandwidth(bytes_per_s: Sequence[float], sources: int = 1) -> list[int]:
    """Nodes in the order in which a chain should visit them: sources first, then by decreasing bandwidth.

    Position k of a chain is limited by the slowest link so far, so a faster node loses nothing by going first and gains
    when a slower one goes behind it (BlitzScale §5.1, Figure 13). Ties go to the lower number.

    Parameters:
        bytes_per_s: bandwidth of each node, one entry a node, the sources (0..sources-1) included.
        sources: how many of the first nodes are sources and keep their places.

    >>> by_bandwidth([1e9, 12.5e9, 25e9, 12.5e9])
    [0, 2, 1, 3]
    """
    rates = [positive(rate, "bytes_per_s") for rate in bytes_per_s]
    targets = range(whole(sources, "sources", 0, len(rates)), len(rates))
    return [*range(sources), *sorted(targets, key=lambda node: (-rates[node], node))]
