"""Placement and allocation: the published example, hardware constants, and what a plain reading of the rules gives."""

import itertools
import math
from fractions import Fraction

import chain_cases as cases
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.chains import (
    Fleet,
    Placement,
    all_chains,
    allocate,
    block_of,
    compose,
    free_slots,
    place,
    reserve,
    token_times,
    whole_models,
    work_of,
)
from workbench.errors import InputError

BLOOM, LLAMA = wb.model("bloom-176b"), wb.model("llama-2-7b")
FAST, SLOW = (group.accelerator for group in wb.cluster("server-chains-simulation").groups)


def test_the_example_of_five_servers():
    """Summary of the paper §3.1.4: three chains of 5 jobs, the second a mixture of GBP-CR's two; j3 keeps 5 slots."""
    made = compose(cases.FIVE, 1)
    assert made.placement.first.tolist() == [0, 1, 0, 1, 2]
    assert made.placement.blocks.tolist() == [1, 2, 1, 1, 1]
    assert made.placement.group.tolist() == [0, 0, 1, 1, 1]
    assert [chain.servers for chain in made.chains] == [(0, 1), (0, 3, 4), (2, 3, 4)]
    assert [chain.capacity for chain in made.chains] == [5, 5, 5]
    assert [chain.service_s for chain in made.chains] == pytest.approx([3.005, 3.010, 3.012], abs=1e-12)
    assert made.left.tolist() == [0, 0, 5, 0, 0]
    assert made.placement.group_rate_per_s == pytest.approx(1 / 3.005 + 1 / 3.012)
    assert made.rate_per_s == pytest.approx(5 / 3.005 + 5 / 3.010 + 5 / 3.012)


def test_seconds_per_block_of_bloom():
    """Paper §4.1.1: 109 and 175 ms for 2,000 tokens in, 20 out; by hand 1 + 5/120·2000 + 1.32/1.02·19 ms = 108.92."""
    times = token_times([FAST, SLOW], [0.0, 0.0], block_of(BLOOM))
    seconds = times.compute_s @ work_of([2000], [20])[0]
    assert seconds * 1e3 == pytest.approx([108.92, 175.18], abs=0.005)
    assert seconds[0] * 1e3 == pytest.approx(1 + 5 / 120 * 2000 + 1.32 / 1.02 * 19, rel=1e-12)


def test_communication_is_a_round_trip_and_a_message_for_each_token():
    times = token_times([SLOW], [0.030], block_of(BLOOM))
    assert times.communication_s @ work_of([2000], [20])[0] == pytest.approx([20 * (0.030 + 0.018)])


def test_cache_of_a_job_is_exact():
    """2 x 14336 x 2048 x 2 and 2 x 4096 x 2048 x 2 bytes a block."""
    assert block_of(BLOOM).cache_bytes == 117_440_512
    assert block_of(LLAMA).cache_bytes == 33_554_432


M_OF_C = {
    1: (27, 13), 2: (25, 12), 3: (23, 11), 5: (20, 10), 7: (18, 9), 10: (16, 8), 15: (12, 6), 20: (10, 5), 30: (8, 4),
    45: (6, 3),
}  # fmt: skip


def simulation_fleet(servers=20, fast=4, cache_bytes=None) -> Fleet:
    block = block_of(BLOOM)
    return Fleet(
        memory_bytes=[40e9] * fast + [20e9] * (servers - fast),
        communication_s=[0.7] * servers,
        compute_s=[0.10892] * fast + [0.17518] * (servers - fast),
        layers=70,
        block_bytes=block.bytes,
        cache_bytes=cache_bytes or block.cache_bytes,
    )


def test_blocks_by_reserved_jobs():
    """Table of m_j(c) for s_m 1.32 GB, s_c 0.11744 GB; c = 46 no longer hosts 70 blocks on 4 + 16 servers."""
    fleet = simulation_fleet()
    for c, blocks in M_OF_C.items():
        assert reserve(fleet, c)[[0, -1]].tolist() == list(blocks)
    assert place(fleet, 45).groups == 1
    assert place(fleet, 46).groups == 0


def test_whole_models_of_llama():
    """24 jobs on 40 GB, 5 on 20 GB, 102 on the nine servers, 12.67 GB left on average (authors' scripts)."""
    block = block_of(LLAMA)
    fleet = Fleet(
        memory_bytes=[40e9] * 3 + [20e9] * 6,
        communication_s=[1.0] * 9,
        compute_s=[0.1] * 9,
        layers=32,
        block_bytes=block.bytes,
        cache_bytes=block.cache_bytes,
    )
    made = whole_models(fleet)
    assert sorted(chain.capacity for chain in made.chains) == [5] * 6 + [24] * 3
    assert made.job_servers == 102
    assert np.mean(fleet.memory_bytes - 32 * block.bytes) / 1e9 == pytest.approx(12.67, abs=0.01)
    assert reserve(fleet, 35)[[0, -1]].tolist() == [24, 12]


def by_the_book(fleet: Fleet, c: int, needed: float):
    """Algorithm 1 as the notes state it (§2.4), in fractions and 1-based, for comparison."""
    room = [int(m) // (fleet.block_bytes + fleet.cache_bytes * c) for m in fleet.memory_bytes]
    m = [min(count, fleet.layers) for count in room]
    t = [Fraction(a) + Fraction(b) * k for a, b, k in zip(fleet.communication_s, fleet.compute_s, m, strict=True)]
    if sum(m) < fleet.layers:
        return [0] * len(m), []
    order = sorted((j for j in range(len(m)) if m[j]), key=lambda j: float(t[j]) / m[j])
    a, rate, begin, group, groups = 1, Fraction(0), [0] * len(m), [], []
    for j in order:
        begin[j] = min(a, fleet.layers - m[j] + 1)
        group.append(j)
        a = min(a + m[j] - 1, fleet.layers) + 1
        if a > fleet.layers:
            groups.append(group)
            rate += 1 / sum(t[i] for i in group)
            if rate >= Fraction(needed) / c:
                break
            a, group = 1, []
    return begin, groups


@given(fleet=cases.fleets(), c=st.integers(1, 6), needed=st.sampled_from([0.01, 0.5, 3.0, 1e9]))
def test_placing_follows_the_algorithm(fleet, c, needed):
    begin, groups = by_the_book(fleet, c, needed)
    made = place(fleet, c, needed)
    assert (made.first + 1).tolist() == begin
    assert made.groups == len(groups)
    assert [sorted(group) for group in groups] == [
        np.flatnonzero(made.group == number).tolist() for number in range(made.groups)
    ]


@given(fleet=cases.fleets(), c=st.integers(1, 4))
def test_a_chain_of_a_group_hosts_all_blocks_and_fits_memory(fleet, c):
    made = place(fleet, c)
    for number in range(made.groups):
        hosted = set()
        for j in np.flatnonzero(made.group == number):
            hosted |= set(range(made.first[j], made.first[j] + made.blocks[j]))
        assert hosted == set(range(fleet.layers))
    slots = free_slots(fleet, made)
    assert (slots[made.blocks > 0] >= c * made.blocks[made.blocks > 0]).all()


@given(fleet=cases.fleets(), c=st.integers(1, 3))
def test_the_first_chain_is_the_quickest_of_all(fleet, c):
    """Every chain, found by walking all of them, against the one that GCA takes first."""
    made = compose(fleet, c)
    every = all_chains(fleet, made.placement)
    assert bool(every) == bool(made.chains)
    if every:
        assert made.chains[0].service_s == pytest.approx(every[0].service_s, rel=1e-12)


@given(fleet=cases.fleets(), c=st.integers(1, 3))
def test_allocation_keeps_the_slots(fleet, c):
    made = compose(fleet, c)
    used = np.zeros(fleet.servers, dtype=np.int64)
    for chain in made.chains:
        assert chain.capacity >= 1
        block = 0
        for j, count in zip(chain.servers, chain.blocks, strict=True):
            first, end = made.placement.first[j], made.placement.first[j] + made.placement.blocks[j]
            assert first <= block < end
            assert block + count == end  # a server is always run to the end of its range
            block = end
            used[j] += count * chain.capacity
        assert block == fleet.layers
    assert (used + made.left == made.slots).all()
    assert [a.service_s <= b.service_s for a, b in itertools.pairwise(made.chains)].count(False) == 0
    stuck = Placement(made.placement.first, made.placement.blocks, made.placement.group, 0, 0.0, False)
    rest = fleet.model_copy(update={"memory_bytes": fleet.memory_bytes - used * fleet.cache_bytes})
    assert allocate(rest, stuck).chains == ()  # no further job fits anywhere


def test_lemma_1_the_rate_is_at_least_that_of_the_groups():
    """Reserving c jobs gives each group c slots: the total rate is at least c times Σ 1/Σt."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        fleet = cases.random_fleet(rng, 8, 5)
        for c in (1, 2, 4):
            made = compose(fleet, c)
            assert made.rate_per_s >= c * made.placement.group_rate_per_s * (1 - 1e-12)


def test_stopping_leaves_servers_empty():
    """With c = 7 and 0.2 jobs/s one chain is enough and 16 of 20 servers stay empty (notes §2.4)."""
    fleet = simulation_fleet()
    stopped = place(fleet, 7, 0.2 / 0.7)
    assert (stopped.groups, stopped.enough) == (1, True)
    assert int((stopped.blocks == 0).sum()) == 16
    assert int((place(fleet, 7).blocks == 0).sum()) == 0
    never = place(fleet, 7, 100.0)
    assert not never.enough


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_bytes": [1.5]}, "whole bytes"),
        ({"communication_s": [1.0, 2.0]}, "2 numbers for 1 servers"),
        ({"compute_s": [-1.0]}, "finite numbers from 0 on"),
        ({"communication_s": [0.0], "compute_s": [0.0]}, "both 0"),
        ({"layers": 0}, "layers"),
        ({"cache_bytes": 0}, "cache_bytes"),
    ],
)
def test_fleets_that_cannot_be(change, message):
    given = {
        "memory_bytes": [10],
        "communication_s": [1.0],
        "compute_s": [1.0],
        "layers": 1,
        "block_bytes": 1,
        "cache_bytes": 1,
    }
    with pytest.raises(InputError, match=message):
        Fleet(**given | change)


def test_placements_that_cannot_be():
    five = cases.FIVE
    none = np.full(5, -1)

    def placed(first, blocks):
        return Placement(np.array(first), np.array(blocks), none, 0, 0.0, False)

    with pytest.raises(InputError, match="cannot hold 3 blocks"):
        allocate(five, placed([0, -1, -1, -1, -1], [3, 0, 0, 0, 0]))
    with pytest.raises(InputError, match="leaves the model"):
        allocate(five, placed([2, -1, -1, -1, -1], [2, 0, 0, 0, 0]))
    with pytest.raises(InputError, match="has 2 servers, the fleet 5"):
        allocate(five, placed([0, 0], [1, 1]))
    with pytest.raises(InputError, match="reserved"):
        compose(five, 0)


def test_bytes_are_not_rounded_away():
    """20 = 10 + 10 · 1: exactly one block; a quotient in floating point of 0.3 and 0.1 would lose one."""
    one = Fleet(memory_bytes=[20], communication_s=[1], compute_s=[1], layers=1, block_bytes=10, cache_bytes=10)
    assert reserve(one, 1).tolist() == [1]
    assert free_slots(one, place(one, 1)).tolist() == [1]
    assert math.floor(0.3 / 0.1) == 2  # what it guards against
