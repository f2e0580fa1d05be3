"""When the targets of forwarding chains hold the weights, and how far a greedy plan is from the best one."""

import itertools
import math
from collections.abc import Sequence

from workbench.errors import InputError
from workbench.records import positive
from workbench.scaling.policy.chain_plan import Chain, Holder, Node, Spare, check_parts, free_sources, grouped
from workbench.scaling.policy.lane_plan import Round

MOST_NODES = 7
"""Whose orders the exhaustive search goes through: 7 nodes on 3 chains are 181,440 plans."""


def chain_times(chain: Chain, total_bytes: float, between_leaves: float = 1.0) -> list[float]:
    """Seconds until each node of a chain holds all weights: bytes over the slowest link up to it.

    A link is as fast as the slower of its ends, and `between_leaves` times that between leaf switches. Units are small
    and hops without latency (`workbench.transfer.model.forwarding_chain_s` has both).

    Source: BlitzScale (OSDI'25) §5.1.
    """
    size, share = positive(total_bytes, "total_bytes"), _share(between_leaves)
    before: Holder | Node = chain.source
    slowest, seconds = float("inf"), []
    for node in chain.nodes:
        slowest, before = min(slowest, _link(before, node, share)), node
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


def lane_times(rounds: Sequence[Round], total_bytes: float, between_leaves: float = 1.0) -> list[list[float]]:
    """Seconds until each domain of each round of a plan of lanes holds the weights.

    It does when the slowest of its stripes is there; gathering inside a domain overlaps with that. A round begins when
    the one before it has ended.
    """
    began_s, seconds = 0.0, []
    for lanes in rounds:
        stripe = positive(total_bytes, "total_bytes") / len(lanes)
        arrived = [chain_times(lane, stripe, between_leaves) for lane in lanes]
        seconds.append([began_s + max(column) for column in zip(*arrived, strict=True)])
        began_s = max(seconds[-1])
    return seconds


def plans_to_try(nodes: int, sources: int) -> int:
    """How many plans `best_chains` goes through: orders of the nodes, times ways to cut them into chains.

    >>> plans_to_try(7, 3)
    181440
    """
    return math.factorial(nodes) * math.comb(nodes + sources - 1, sources - 1)


def best_chains(
    holders: Sequence[Holder],
    spares: Sequence[Spare],
    wanted: int,
    total_bytes: float,
    between_leaves: float = 1.0,
    direction_aware: bool = True,
) -> list[Chain]:
    """The plan whose last accelerator, and then whose mean, is earliest, of all ways to put the nodes behind sources.

    The nodes are those that the greedy plan takes (`grouped`), the sources all that are free; `direction_aware` is as
    of `plan_chains`.

    Raises:
        InputError: too many nodes to try, or what `plan_chains` cannot use either.
    """
    check_parts(holders, spares, wanted)
    nodes, sources = grouped(spares, wanted), free_sources(holders, direction_aware)
    if len(nodes) > MOST_NODES:
        raise InputError(f"make {len(nodes)} nodes", f"take at most {MOST_NODES}", field="spares")
    size, share = positive(total_bytes, "total_bytes"), _share(between_leaves)
    ends = [*sources, *nodes]
    rate = [[_link(one, other, share) for other in nodes] for one in ends]
    members = [len(node.members) for node in nodes]
    best, least = (), (float("inf"), float("inf"))
    for order in itertools.permutations(range(len(nodes))):
        for cuts in itertools.combinations_with_replacement(range(len(nodes) + 1), len(sources) - 1):
            edges = (0, *cuts, len(nodes))
            last, total = 0.0, 0.0
            for source, (first, behind) in enumerate(itertools.pairwise(edges)):
                before, slowest = source, float("inf")
                for node in order[first:behind]:
                    slowest = min(slowest, rate[before][node])
                    before = len(sources) + node
                    last = max(last, size / slowest)
                    total += size / slowest * members[node]
            if (last, total) < least:
                best, least = (order, edges), (last, total)
    if not nodes:
        return []
    order, edges = best
    return [
        Chain(source=source, nodes=tuple(nodes[node] for node in order[first:behind]))
        for source, (first, behind) in zip(sources, itertools.pairwise(edges), strict=True)
        if behind > first
    ]


def _link(one: Holder | Node, other: Node, share: float) -> float:
    return min(one.bytes_per_s, other.bytes_per_s) * (1.0 if one.leaf == other.leaf else share)


def _share(between_leaves: float) -> float:
    share = positive(between_leaves, "between_leaves")
    if share > 1:
        raise InputError(f"is {share:g}", "give at most 1: no faster than below a leaf switch", field="between_leaves")
    return share
