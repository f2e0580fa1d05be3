"""Plain Python twins of the kernels over lists of transfers and flows: what they mean, without regard for speed."""

import math
from fractions import Fraction


def dataflow_slow(transfers, held, busy_s, travel_s):
    """When each transfer ends if it starts as soon as both nodes have finished what stands before it in the list.

    Parameters:
        transfers: (source, target, block) in order, one port a node and direction.
        held: dict (node, block) -> time, what is held at first; deliveries are added to it.
        busy_s, travel_s: per transfer, see the kernel.
    """
    ends = []
    for place, (source, target, block) in enumerate(transfers):
        before = range(place)
        sent = [ends[i][1] for i in before if transfers[i][0] == source]
        received = [ends[i][1] for i in before if transfers[i][1] == target]
        start = max([held[source, block], *sent[-1:], *received[-1:]])
        ends.append((start + travel_s[place], start + busy_s[place]))
        held[target, block] = min(held.get((target, block), math.inf), start + travel_s[place])
    return [end for end, _ in ends]


def barrier_slow(steps, travel_s):
    """When each transfer ends in lock step: the sum of the slowest transfers of earlier steps, plus its own time."""
    slowest = {step: max(t for s, t in zip(steps, travel_s, strict=True) if s == step) for step in set(steps)}
    return [
        sum(slowest[before] for before in sorted(slowest) if before < step) + travel
        for step, travel in zip(steps, travel_s, strict=True)
    ]


def max_min_fair_slow(paths, capacities):
    """Max-min fair rates in exact fractions: repeatedly freeze the flows through the tightest resource."""
    rates: dict[int, Fraction] = {}
    while len(rates) < len(paths):
        shares = {}
        for resource, capacity in enumerate(capacities):
            users = sum(path.count(resource) for flow, path in enumerate(paths) if flow not in rates)
            if users:
                used = sum(rates[flow] * paths[flow].count(resource) for flow in rates)
                shares[resource] = (Fraction(capacity) - used) / users
        if not shares:
            return [rates.get(flow, math.inf) for flow in range(len(paths))]
        tightest = min(shares, key=shares.get)
        for flow, path in enumerate(paths):
            if flow not in rates and tightest in path:
                rates[flow] = shares[tightest]
    return [rates[flow] for flow in range(len(paths))]
