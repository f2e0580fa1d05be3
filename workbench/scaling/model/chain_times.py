"""When the targets of forwarding chains hold the weights, and how far a greedy plan is from the best one."""

import itertools
from collections.abc import Sequence

from workbench.errors import InputError
from workbench.records import positive
from workbench.scaling.policy.chain_plan import Chain, Holder, Node, Spare, free_sources, grouped

MOST_NODES = 7
"""Whose orders the exhaustive search goes through: 7 nodes on 3 chains are 181,440 plans."""


def chain_times(chain: Chain, total_bytes: float, between_leaves: float = 1.0) -> list[float]:
    """Seconds until each node of a chain holds all weights: bytes over the slowest link up to it.

    A link is as fast as the slower of its ends, and `between_leaves` times that between leaf switches. Units are small
    and hops without latency (`workbench.transfer.model.forwarding_chain_s` has both).

    Source: BlitzScale (OSDI'25) §5.1.
    """
    size, share = positive(total_bytes, "total_bytes"), positive(between_leaves, "between_leaves")
    if share > 1:
        raise InputError(f"is {share:g}", "give at most 1: no faster than below a leaf switch", field="between_leaves")
    before: Holder | Node = chain.source
    slowest, seconds = float("inf"), []
    for node in chain.nodes:
        link = min(before.bytes_per_s, node.bytes_per_s) * (1.0 if node.leaf == before.leaf else share)
        slowest, before = min(slowest, link), node
        seconds.append(size / slowest)
    return seconds


def plan_time(chains: Sequence[Chain], total_bytes: float, between_leaves: float = 1.0) -> tuple[float, float]:
    """Seconds until the last accelerator of a plan holds the weights, and the mean over accelerators."""
    seconds = [
        (value, len(node.members))
        for chain in chains
        for value, node in zip(chain_times(chain, total_bytes, between_leaves), chain.nodes, strict=True)
    ]
    if not seconds:
        return 0.0, 0.0
    count = sum(members for _, members in seconds)
    return max(value for value, _ in seconds), sum(value * members for value, members in seconds) / count


def best_chains(
    holders: Sequence[Holder], spares: Sequence[Spare], wanted: int, total_bytes: float, between_leaves: float = 1.0
) -> list[Chain]:
    """The plan whose last accelerator, and then whose mean, is earliest, of all ways to put the nodes behind sources.

    The nodes are those that the greedy plan takes (`grouped`), the sources all that are free.

    Raises:
        InputError: too many nodes to try.
    """
    nodes, sources = grouped(spares, wanted), free_sources(holders)
    if len(nodes) > MOST_NODES:
        raise InputError(f"make {len(nodes)} nodes", f"take at most {MOST_NODES}", field="spares")
    best, least = [], (float("inf"), float("inf"))
    count = len(sources)
    for order in itertools.permutations(nodes):
        for cuts in itertools.combinations_with_replacement(range(len(nodes) + 1), count - 1):
            edges = (0, *cuts, len(nodes))
            chains = [
                Chain(source=source, nodes=order[first:last])
                for source, first, last in zip(sources, edges, edges[1:], strict=False)
                if last > first
            ]
            found = plan_time(chains, total_bytes, between_leaves)
            if found < least:
                best, least = chains, found
    return best
