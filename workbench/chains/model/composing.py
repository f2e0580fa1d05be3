"""A placement and the chains that run through it: GBP-CR and GCA with records in and out."""

from numbers import Real
from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.chains.model.fleet import Fleet, of_one_kind
from workbench.chains.policy.allocation import gca
from workbench.chains.policy.placement import blocks_that_fit, gbp_cr
from workbench.errors import InputError, UserError
from workbench.queueing.checking import not_negative, positive
from workbench.records import of_type, takes_records, whole


class Placement(NamedTuple):
    """Which blocks each server hosts.

    Attributes:
        first: int64[J], first block of each, counted from 0; -1 where it hosts none.
        blocks: int64[J], how many; 0 where it hosts none.
        group: int64[J], the disjoint chain that placing put it in; -1 for none.
        groups: how many disjoint chains there are (K(c) where placing stopped at a rate).
        group_rate_per_s: their rate with one job at a time on each, every server processing all its blocks.
        enough: whether that is the rate that was asked for.
    """

    first: np.ndarray
    blocks: np.ndarray
    group: np.ndarray
    groups: int
    group_rate_per_s: float
    enough: bool


class Chain(NamedTuple):
    """One chain: its servers in order, the blocks processed on each, jobs at once, and seconds of a job."""

    servers: tuple[int, ...]
    blocks: tuple[int, ...]
    capacity: int
    service_s: float


class Composition(NamedTuple):
    """Servers put together to chains.

    Attributes:
        fleet: the servers.
        reserved: c, jobs for which cache was reserved when blocks were placed; 0 where placing had no such rule.
        placement: who hosts what.
        slots: int64[J], cache slots beside the weights, one a job and block.
        chains: in order of rising service time.
        left: int64[J], slots that no chain uses.
    """

    fleet: Fleet
    reserved: int
    placement: Placement
    slots: np.ndarray
    chains: tuple[Chain, ...]
    left: np.ndarray

    @property
    def rates_per_s(self) -> np.ndarray:
        """float64[K], jobs that one slot of each chain completes in a second."""
        return np.array([1 / chain.service_s for chain in self.chains])

    @property
    def capacities(self) -> np.ndarray:
        """int64[K], jobs that each chain holds."""
        return np.array([chain.capacity for chain in self.chains], dtype=np.int64)

    @property
    def rate_per_s(self) -> float:
        """Jobs a second that all chains complete when all are full (ν)."""
        return float(np.sum(self.capacities * self.rates_per_s))

    @property
    def job_servers(self) -> int:
        """Jobs that all chains hold together (C)."""
        return int(self.capacities.sum())

    def table(self) -> pl.DataFrame:
        """One row a chain: its servers and the blocks on each as text, capacity, seconds and rate."""
        rows = [
            (
                " - ".join(f"j{server + 1}" for server in chain.servers),
                " + ".join(map(str, chain.blocks)),
                chain.capacity,
                chain.service_s,
                chain.capacity / chain.service_s,
            )
            for chain in self.chains
        ]
        columns = {"servers": pl.String, "blocks": pl.String, "capacity": pl.Int64, "service_s": pl.Float64}
        return pl.DataFrame(rows, schema={**columns, "rate_per_s": pl.Float64}, orient="row")


@takes_records
def reserve(fleet: Fleet, reserved: int) -> np.ndarray:
    """How many blocks does each server host when room for `reserved` jobs is kept on each block (m_j(c))?

    Parameters:
        fleet: the servers.
        reserved: c, 1 or more.

    Returns:
        int64[J], at most L each; 0 where not even one block fits.

    Raises:
        InputError: c is no whole number of 1 or more.
    """
    jobs = whole(reserved, "reserved", 1)
    blocks = np.zeros(fleet.servers, dtype=np.int64)
    if jobs <= fleet.most_reserved:
        memory = of_one_kind(fleet.memory_bytes)
        blocks_that_fit(memory, fleet.layers, fleet.block_bytes, fleet.cache_bytes, jobs, blocks)
    return blocks


@takes_records
def place(fleet: Fleet, reserved: int, needed_per_s: float = np.inf) -> Placement:
    """Where does each server's range of blocks lie (GBP-CR, Algorithm 1 of arXiv 2604.14993)?

    Parameters:
        fleet: the servers.
        reserved: c, jobs for which cache is kept on every hosted block.
        needed_per_s: rate at which disjoint chains must complete jobs when each holds c of them; placing stops once
            c Σ 1/T reaches it and leaves the other servers empty. Infinity, the default, places every server.

    Returns:
        A placement without groups where all servers together cannot hold the blocks. `enough` says whether the rate is
        reached, and is true for infinity where there is a group.

    Raises:
        InputError: c is no whole number of 1 or more, or the rate is below 0.
    """
    all_servers = isinstance(needed_per_s, Real) and needed_per_s == np.inf
    needed = np.inf if all_servers else not_negative(needed_per_s, "needed_per_s")
    return placed(fleet, reserve(fleet, reserved), reserved, needed)


def placed(fleet: Fleet, blocks: np.ndarray, reserved: int, needed_per_s: float) -> Placement:
    """`place`, given the blocks that `reserve` gave for this c, and a rate that was checked."""
    first, group, needed = np.empty_like(blocks), np.empty_like(blocks), needed_per_s / reserved
    communication_s, compute_s = of_one_kind(fleet.communication_s), of_one_kind(fleet.compute_s)
    groups, rate = gbp_cr(blocks, communication_s, compute_s, fleet.layers, needed, first, group)
    enough = groups > 0 and (needed == np.inf or rate >= needed)
    return Placement(first, np.where(first < 0, 0, blocks), group, groups, rate, enough)


@takes_records
def allocate(fleet: Fleet, placement: Placement, reserved: int = 0) -> Composition:
    """Which chains run through a placement, and how many jobs may each hold (GCA, Algorithm 2)?

    Parameters:
        fleet: the servers.
        placement: who hosts what; blocks must fit into memory.
        reserved: c of the placement, for the record.

    Raises:
        InputError: a server cannot hold the blocks placed on it, or its range leaves the model.
    """
    slots = free_slots(fleet, placement)
    blocks, first = placement.blocks, placement.first
    rows, width = int(blocks.sum()) + 1, max(1, min(fleet.servers, fleet.layers))
    server, share = np.empty((rows, width), dtype=np.int64), np.empty((rows, width), dtype=np.int64)
    length, capacity, time_s = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64), np.empty(rows)
    left = slots.copy()
    count = gca(
        first, blocks, left, of_one_kind(fleet.communication_s), of_one_kind(fleet.compute_s), fleet.layers, server,
        share, length, capacity, time_s,
    )  # fmt: skip
    chains = tuple(
        Chain(
            tuple(server[k, : length[k]].tolist()),
            tuple(share[k, : length[k]].tolist()),
            int(capacity[k]),
            float(time_s[k]),
        )
        for k in range(count)
    )
    return Composition(fleet, reserved, placement, slots, chains, left)


@takes_records
def free_slots(fleet: Fleet, placement: Placement) -> np.ndarray:
    """How many cache slots does each server have beside its weights?

    Returns:
        int64[J], one slot a job and block; 0 for servers that host nothing.

    Raises:
        InputError: a placement of other servers, a range that leaves the model, or more blocks than memory holds.
    """
    blocks, first = (of_type(getattr(placement, name), np.ndarray, name) for name in ("blocks", "first"))
    if blocks.size != fleet.servers or first.size != fleet.servers:
        raise InputError(f"has {blocks.size} servers, the fleet {fleet.servers}", "place the same servers")
    wrong = np.flatnonzero((blocks > 0) & ((first < 0) | (first + blocks > fleet.layers)))
    if wrong.size:
        raise InputError("leaves the model", f"keep it within {fleet.layers} blocks", row=int(wrong[0]) + 1)
    room = fleet.memory_bytes - fleet.block_bytes * blocks
    if (room < 0).any():
        row = int(np.argmax(room < 0))
        raise InputError(f"cannot hold {blocks[row]} blocks", "place fewer on it", row=row + 1, field="blocks")
    return np.where(blocks > 0, room // fleet.cache_bytes, 0)


@takes_records
def compose(fleet: Fleet, reserved: int, needed_per_s: float = np.inf) -> Composition:
    """How do these servers form chains when c jobs are reserved for: GBP-CR, then GCA?

    Parameters:
        fleet, reserved, needed_per_s: as in `place`.

    >>> five = Fleet(memory_bytes=[20, 30, 20, 20, 20], communication_s=[1, 2, 1, 1, 1],
    ...              compute_s=[0.001, 0.002, 0.003, 0.004, 0.005], layers=3, block_bytes=10, cache_bytes=1)
    >>> compose(five, 1).table()["servers"].to_list()
    ['j1 - j2', 'j1 - j4 - j5', 'j3 - j4 - j5']
    """
    return allocate(fleet, place(fleet, reserved, needed_per_s), reserved)


@takes_records
def whole_models(fleet: Fleet) -> Composition:
    """Chains of one server each: every server that can hold all blocks and a job does ("JFFC only")."""
    blocks = np.where(fleet.memory_bytes > fleet.block_bytes * fleet.layers, fleet.layers, 0)
    first = np.where(blocks > 0, 0, -1)
    group = np.where(blocks > 0, np.cumsum(blocks > 0) - 1, -1)
    times = fleet.communication_s + fleet.compute_s * fleet.layers
    rate = float(np.sum(1 / times[blocks > 0]))
    return allocate(fleet, Placement(first, blocks, group, int((blocks > 0).sum()), rate, bool((blocks > 0).any())))


def running(composition: Composition) -> Composition:
    """The same composition, or a `UserError` where no chain runs through all blocks."""
    if not composition.chains:
        raise UserError(
            f"No chain of these {composition.fleet.servers} servers hosts all {composition.fleet.layers} blocks; "
            "reserve for fewer jobs, or add memory."
        )
    return composition


def needed_rate(arrival_rate_per_s: float, most_load: float) -> float:
    """Rate that chains must reach so that they are busy at most this share of the time: λ/ρ."""
    if positive(most_load, "most_load") > 1:
        raise InputError(f"is {most_load:g}", "give a load above 0 and at most 1", field="most_load")
    return positive(arrival_rate_per_s, "arrival_rate_per_s") / most_load
