"""Ground truth for the greedy algorithms: every grouping of few servers, every chain, and integer programs."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.chains.kernels.grouping import with_one_more
from workbench.chains.model.composing import Chain, Composition, Placement, free_slots, reserve
from workbench.chains.model.fleet import Fleet
from workbench.errors import InputError, UserError
from workbench.queueing.checking import not_negative, positive
from workbench.records import shown, takes_records, whole

MOST_SERVERS = 12
"""Servers whose groupings are still counted in a second: three to the power of them."""

MOST_CHAINS = 20_000

LEAST_SHARE = 1e-6
"""Share of one job on the slowest chain below which a rate that must be reached makes no difference."""


class Allocation(NamedTuple):
    """The fewest job servers that reach a rate.

    Attributes:
        chains: those that hold at least one job, with as many as they should hold.
        job_servers: how many jobs they hold together.
        rate_per_s: what they complete together.
    """

    chains: tuple[Chain, ...]
    job_servers: int
    rate_per_s: float


@takes_records
def fewest_chains(fleet: Fleet, reserved: int, needed_per_s: float) -> int | None:
    """How few disjoint chains reach a rate, over all groupings of the servers (problem (7) of arXiv 2604.14993)?

    What GBP-CR finds greedily (K(c)) this counts exactly; see `best_groups`, which names the servers.

    Returns:
        The number of chains, or None where no grouping reaches the rate.
    """
    groups = best_groups(fleet, reserved, needed_per_s)
    return None if groups is None else len(groups)


@takes_records
def best_groups(fleet: Fleet, reserved: int, needed_per_s: float) -> tuple[tuple[int, ...], ...] | None:
    """Which grouping of the servers into the fewest disjoint chains that reach a rate serves most?

    A group hosts the model if its blocks add up to L; with c jobs it completes c / Σ t jobs a second. The best rate of
    every set of servers in 1, 2, ... groups is worked out until one reaches the rate.

    Parameters:
        fleet: at most 12 servers.
        reserved: c.
        needed_per_s: λ/ρ.

    Returns:
        The servers of each chain, or None where no grouping reaches the rate.
    """
    if fleet.servers > MOST_SERVERS:
        raise UserError(
            f"{fleet.servers} servers have too many groupings to count; take at most {MOST_SERVERS}, or place them."
        )
    needed = not_negative(needed_per_s, "needed_per_s") / whole(reserved, "reserved", 1)
    blocks = reserve(fleet, reserved)
    times = fleet.communication_s + fleet.compute_s * blocks
    sets = 1 << fleet.servers
    members = (np.arange(sets)[:, None] >> np.arange(fleet.servers)) & 1
    hosted, seconds = members @ blocks, members @ times
    useless = (members & (blocks == 0)).any(axis=1)
    rate = np.where((hosted >= fleet.layers) & ~useless, 1 / np.where(seconds > 0, seconds, np.inf), -np.inf)
    best = [rate]
    while best[-1].max() < needed:
        if len(best) == fleet.servers:
            return None
        found = np.empty(sets)
        with_one_more(best[-1], rate, found)
        best.append(found)
    return tuple(tuple(np.flatnonzero(members[part]).tolist()) for part in _cut(best, rate))


def _cut(best: list[np.ndarray], rate: np.ndarray) -> list[int]:
    """The groups, as sets of servers, that the best rate of as many groups as `best` has entries is made of."""
    left, groups = int(np.argmax(best[-1])), []
    for fewer in reversed(best[:-1]):
        parts = np.arange(1, left)
        parts = parts[(parts & left) == parts]
        groups.append(int(parts[np.argmax(rate[parts] + fewer[left ^ parts])]))
        left ^= groups[-1]
    return [*groups, left]


@takes_records
def all_chains(fleet: Fleet, placement: Placement, most: int = MOST_CHAINS) -> tuple[Chain, ...]:
    """Every chain that runs through a placement, in order of rising seconds, each with the capacity it has alone.

    Raises:
        UserError: there are more than `most`.
    """
    most = whole(most, "most", 1)
    slots = free_slots(fleet, placement)
    ends = np.where(placement.blocks > 0, placement.first + placement.blocks, -1)
    found: list[Chain] = []
    ways: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [(0, (), ())]
    while ways:
        block, servers, shares = ways.pop()
        for j in np.flatnonzero((placement.first <= block) & (ends > block) & (placement.first >= 0)).tolist():
            work = int(ends[j] - block)
            if work > slots[j]:
                continue
            way = (int(ends[j]), (*servers, j), (*shares, work))
            if way[0] < fleet.layers:
                ways.append(way)
                continue
            jobs = min(int(slots[s]) // w for s, w in zip(way[1], way[2], strict=True))
            found.append(Chain(way[1], way[2], jobs, service_s(fleet, way[1], way[2])))
        if len(found) + len(ways) > most:
            raise UserError(f"More than {most:,} chains run through this placement; take fewer servers or blocks.")
    return tuple(sorted(found, key=lambda chain: chain.service_s))


@takes_records
def count_chains(fleet: Fleet, placement: Placement) -> int:
    """How many chains run through a placement? As many as `all_chains` names, counted block by block."""
    slots = free_slots(fleet, placement)
    ends = np.where(placement.blocks > 0, placement.first + placement.blocks, -1)
    ways = [1] + [0] * fleet.layers
    for block in range(fleet.layers):
        if ways[block]:
            for j in np.flatnonzero((placement.first <= block) & (ends > block) & (ends - block <= slots)).tolist():
                ways[int(ends[j])] += ways[block]
    return ways[-1]


def service_s(fleet: Fleet, servers: tuple[int, ...], blocks: tuple[int, ...]) -> float:
    """Mean seconds of a job on a chain: T_k = Σ (τc + τp m)."""
    return math.fsum(
        fleet.communication_s[j] + fleet.compute_s[j] * count for j, count in zip(servers, blocks, strict=True)
    )


@takes_records
def fewest_job_servers(
    composition: Composition, needed_per_s: float, chains: tuple[Chain, ...] | None = None
) -> Allocation | None:
    """How few jobs must chains hold together to reach a rate (problem (5) with the placement given)?

    An integer program: minimise Σ c_k where Σ c_k/T_k reaches the rate and no server runs out of slots. NP-hard in
    general (Theorem 1); solved by HiGHS.

    Parameters:
        composition: servers, slots, and the chains to choose from.
        needed_per_s: λ/ρ.
        chains: other chains to choose from, such as `all_chains`.

    Returns:
        The allocation, or None where all slots together do not reach the rate.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    needed = positive(needed_per_s, "needed_per_s")
    given = composition.chains if chains is None else chains
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(one, Chain) for one in given):
        raise InputError(f"is {shown(chains)}", "give chains, such as those of all_chains", field="chains")
    if not given:
        return None
    rates = np.array([1 / chain.service_s for chain in given])
    needed = max(needed, float(rates.min()) * LEAST_SHARE)  # any one job more than reaches it, and nothing overflows
    taken = np.zeros((composition.fleet.servers, len(given)))
    for k, chain in enumerate(given):
        taken[list(chain.servers), k] = chain.blocks
    most = np.array([_alone(composition, chain) for chain in given], dtype=float)
    found = milp(
        np.ones(len(given)),
        integrality=np.ones(len(given)),
        bounds=Bounds(0, most),
        constraints=[
            LinearConstraint(taken, -np.inf, composition.slots.astype(float)),
            # needed in units of itself, so that the solver's absolute tolerance is a relative one
            LinearConstraint(rates[None, :] / needed, 1.0, np.inf),
        ],
    )
    if not found.success:
        return None
    counts = np.rint(found.x).astype(np.int64)
    chosen = tuple(chain._replace(capacity=int(count)) for chain, count in zip(given, counts, strict=True) if count > 0)
    return Allocation(chosen, int(counts.sum()), float(rates @ counts))


def _alone(composition: Composition, chain: Chain) -> int:
    return min(int(composition.slots[s]) // w for s, w in zip(chain.servers, chain.blocks, strict=True))


@takes_records
def greedy_job_servers(composition: Composition, needed_per_s: float) -> int | None:
    """How many jobs must GCA's chains hold, fastest first, to reach a rate? None where all together do not.

    Parameters:
        composition: what GCA made.
        needed_per_s: jobs a second to be completed with all of these slots busy.
    """
    needed, rate, jobs = not_negative(needed_per_s, "needed_per_s"), 0.0, 0
    for chain in composition.chains:
        missing = (needed * (1 - 1e-12) - rate) * chain.service_s
        take = chain.capacity if missing >= chain.capacity else max(0, math.ceil(missing))
        jobs, rate = jobs + take, rate + take / chain.service_s
        if take < chain.capacity:
            return jobs
    return jobs if rate >= needed * (1 - 1e-12) else None
