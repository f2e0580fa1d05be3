"""PETALS and BPRR: placement rules by hand and by their published one-liners, routed paths in both rooms."""

import copy
from fractions import Fraction

import chain_cases as cases
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.chains import (
    Fleet,
    PetalsRules,
    bprr,
    chains_of,
    compose,
    dispatch_path,
    petals,
    routed_path,
    sized_jobs,
    with_work,
)
from workbench.chains.model.routing import Routed
from workbench.chains.policy.bprr import cg_bp
from workbench.chains.policy.petals import SORTED, SUMMED, petals_join
from workbench.chains.simulated import simulate_routed
from workbench.errors import InputError, UnknownName, UserError
from workbench.jit import kernels


def rules_for(fleet, window="sorted", most=None, pool=2):
    return PetalsRules(0, pool, most, np.linspace(1.0, 2.0, fleet.servers), window, 0.01, 5.0)


def systems(rng, servers=6, layers=5):
    """A PETALS and a BPRR system of the same servers that host every block, or None."""
    fleet = cases.random_fleet(rng, servers, layers)
    found = [petals(fleet, rng.uniform(0.01, 0.1, servers), rules_for(fleet), rng.permutation(servers))]
    try:
        found.append(bprr(fleet, 0.3))
    except UserError:
        return None
    return found if all(one.covered for one in found) else None


@pytest.mark.parametrize("contention", [False, True])
@given(seed=st.integers(0, 2**32 - 1))
def test_simpy_and_compiled_agree_bit_for_bit(contention, seed):
    rng = np.random.default_rng(seed)
    made = None
    while made is None:
        made = systems(rng)
    jobs = sized_jobs(np.cumsum(rng.exponential(rng.uniform(0.1, 3.0), 40)), rng.exponential(1, 40))
    for system in made:
        compiled = routed_path(jobs, system, contention=contention)
        simulated = simulate_routed(jobs, system, contention=contention)
        assert all(np.array_equal(a, b) for a, b in zip(compiled[:3], simulated[:3], strict=True))
        assert (compiled.start_s >= compiled.arrival_s).all()


def petals_by_its_rule(order, blocks, throughput, layers):
    """`_choose_best_start` of PETALS: the smallest sorted list of window throughputs, then the first start."""
    served, first = [0.0] * layers, [-1] * len(blocks)
    for server in order:
        width = blocks[server]
        if not width:
            continue
        options = ((sorted(served[i : i + width]), i) for i in range(layers - width + 1))
        first[server] = min(options)[-1]
        for block in range(first[server], first[server] + width):
            served[block] += throughput[server]
    return first


@given(seed=st.integers(0, 2**32 - 1))
def test_petals_joins_where_blocks_are_weakest(seed):
    rng = np.random.default_rng(seed)
    layers, servers = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    blocks, order = rng.integers(0, layers + 1, servers), rng.permutation(servers)
    throughput = rng.integers(1, 4, servers).astype(float)
    first = np.empty(servers, np.int64)
    petals_join(order, blocks, throughput, layers, SORTED, first)
    assert first.tolist() == petals_by_its_rule(order, blocks.tolist(), throughput.tolist(), layers)


def test_the_two_rules_for_the_weakest_window_differ():
    """Blocks served by 5, 1, 1, 4 and 0: (4, 0) sorted comes before (1, 1), whose sum is smaller."""
    first, blocks = np.empty(5, np.int64), np.array([1, 1, 1, 1, 2])
    throughput = np.array([5.0, 1.0, 1.0, 4.0, 1.0])
    for rule, begin in ((SORTED, 3), (SUMMED, 1)):
        petals_join(np.arange(5), blocks, throughput, 5, rule, first)
        assert first.tolist() == [0, 1, 2, 3, begin]


def test_petals_takes_what_fits_beside_its_pools():
    """BLOOM on 40 and 20 GB with 2 GiB kept: 24 and 11 blocks, the slow ones at most 4 with the cap; two sessions."""
    fleet = Fleet(
        memory_bytes=[40e9, 20e9], communication_s=[1, 1], compute_s=[0.1, 0.2], layers=70, block_bytes=1.32e9,
        cache_bytes=117_440_512,
    )  # fmt: skip
    pool = 2 * 14336 * 4096 * 2
    rules = PetalsRules(2 * 2**30, pool, None, np.array([2.0, 1.0]))
    made = petals(fleet, [0.02, 0.03], rules, [0, 1]).servers
    assert made.blocks.tolist() == [24, 11]
    assert made.slots.tolist() == [48, 22]
    assert made.most_sessions.tolist() == [2, 2]
    capped = petals(fleet, [0.02, 0.03], rules._replace(most_blocks=np.array([70, 4])), [0, 1])
    assert capped.servers.blocks.tolist() == [24, 4]
    assert not capped.covered


def lonely(slots, compute_s=1.0, communication_s=0.0):
    """One server with the only block and a number of slots, routed by least wait."""
    fleet = Fleet(
        memory_bytes=[10 + slots], communication_s=[communication_s], compute_s=[compute_s], layers=1, block_bytes=10,
        cache_bytes=1,
    )  # fmt: skip
    return fleet, bprr(fleet, 0.01)


def test_a_request_waits_for_what_is_expected_and_for_what_is_true():
    """One slot, mean 1 s. A short job is believed to take 1 s: the next one starts at 1, not at 0.25. A long one ends
    late: the next starts when it really ends."""
    _, system = lonely(1)
    short = routed_path(sized_jobs([0.0, 0.1], [0.25, 1.0]), system)
    assert short.start_s.tolist() == [0.0, 1.0]
    late = routed_path(sized_jobs([0.0, 0.1], [3.0, 1.0]), system)
    assert late.start_s.tolist() == [0.0, 3.0]


def test_routing_avoids_the_server_that_makes_it_wait():
    """Two servers with one slot each, 1 and 1.5 s: the second request would wait 0.9 s for the faster one."""
    fleet = Fleet(
        memory_bytes=[11, 11], communication_s=[0, 0], compute_s=[1.0, 1.5], layers=1, block_bytes=10, cache_bytes=1
    )
    path = routed_path(sized_jobs([0.0, 0.1, 0.2], [1.0, 1.0, 1.0]), bprr(fleet, 0.01))
    assert path.start_s == pytest.approx([0.0, 0.1, 1.0])
    assert path.finish_s == pytest.approx([1.0, 1.6, 2.0])


def test_a_client_of_petals_flees_a_full_server_only():
    """Two servers, 1 s and 5 s; one session each is thought full: the second request pays 10 s in thought and goes to
    the slow one, the third finds both full and takes the fast one, where it waits."""
    fleet = Fleet(
        memory_bytes=[20, 20], communication_s=[0, 0], compute_s=[1.0, 5.0], layers=1, block_bytes=10, cache_bytes=2
    )
    rules = PetalsRules(0, 2, None, np.array([1.0, 1.0]), "sorted", 0.0, 1.0)
    path = routed_path(sized_jobs([0.0, 0.1, 0.2], [1.0] * 3), petals(fleet, [0.0, 0.0], rules, [0, 1]))
    assert path.start_s == pytest.approx([0.0, 0.1, 1.0])
    assert path.finish_s == pytest.approx([1.0, 5.1, 2.0])


@given(seed=st.integers(0, 2**32 - 1))
def test_slots_are_never_overdrawn(seed):
    rng = np.random.default_rng(seed)
    _, system = lonely(int(rng.integers(1, 4)))
    jobs = sized_jobs(np.cumsum(rng.exponential(0.3, 50)), rng.exponential(1, 50))
    path = routed_path(jobs, system)
    for now in path.start_s:
        assert ((path.start_s <= now) & (path.finish_s > now)).sum() <= system.servers.slots[0]


def cg_bp_by_the_book(blocks, token_s, sessions, layers, wanted):
    """CG-BP as the notes word it (§2.12), in fractions: each unserved session of a block costs more than any server."""
    hosting = [j for j in range(len(blocks)) if blocks[j]]
    most = max(map(Fraction, (token_s[j] for j in hosting))) + 1
    capacity, burden, first = [0] * layers, [wanted * most] * layers, [-1] * len(blocks)
    for j in sorted(hosting, key=lambda j: token_s[j]):
        windows = [range(i, i + blocks[j]) for i in range(layers - blocks[j] + 1)]
        if min(capacity) < wanted:
            windows = [window for window in windows if min(capacity[b] for b in window) < wanted]
            best = max(windows, key=lambda window: sum(burden[b] for b in window))
        else:
            best = min(windows, key=lambda window: sorted(capacity[b] for b in window))
        first[j] = best[0]
        for b in best:
            burden[b] -= (most - Fraction(token_s[j])) * min(max(wanted - capacity[b], 0), sessions[j])
            capacity[b] += sessions[j]
    return first


@given(seed=st.integers(0, 2**32 - 1))
def test_cg_bp_follows_its_rule(seed):
    rng = np.random.default_rng(seed)
    layers, servers = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    blocks = np.append(rng.integers(0, layers + 1, servers - 1), layers)
    token_s, sessions = rng.integers(1, 9, servers) / 8, rng.integers(0, 4, servers)
    first, wanted = np.empty(servers, np.int64), int(rng.integers(1, 5))
    cg_bp(blocks, token_s, sessions, layers, wanted, first)
    plain = (blocks.tolist(), token_s.tolist(), sessions.tolist())
    assert first.tolist() == cg_bp_by_the_book(*plain, layers, wanted)


def test_cg_bp_by_hand():
    """Two sessions wanted on three blocks, seconds per block 0.1 to 0.4, so an unserved session costs 1.4 s.

    The first server has 2 blocks and 2 sessions: all windows cost 5.6 s, it goes to blocks 1 and 2, which then cost
    0.2 s. The second, of one block and session, must go to block 3, which costs 1.6 s then and still lacks a session;
    so the third goes to blocks 2 and 3. Now blocks hold 2, 3 and 2: the last one goes to the first of the weakest.
    """
    first = np.empty(4, np.int64)
    cg_bp(np.array([2, 1, 2, 1]), np.array([0.1, 0.2, 0.3, 0.4]), np.array([2, 1, 1, 1]), 3, 2, first)
    assert first.tolist() == [0, 2, 1, 0]


def test_clients_of_bprr_go_by_the_seconds_that_they_expect():
    """Two servers of one slot, 1 and 1.5 s. The second request waits 0.1 s in thought and 1 s in the queue of the
    fast server if it expects nominal seconds; expecting twice as long, it takes the slow one."""
    fleet = Fleet(
        memory_bytes=[11, 11], communication_s=[0, 0], compute_s=[1.0, 1.5], layers=1, block_bytes=10, cache_bytes=1
    )
    jobs, system = sized_jobs([0.0, 0.9], [2.0, 1.0]), bprr(fleet, 0.01)
    assert routed_path(jobs, system).start_s == pytest.approx([0.0, 2.0])
    longer = with_work(system, fleet.communication_s[:, None], fleet.compute_s[:, None], [2.0])
    assert routed_path(jobs, longer).start_s == pytest.approx([0.0, 0.9])


def test_bprr_places_each_block_often_enough():
    """Where memory allows it, every block can hold R sessions: the sum of sessions of the servers that host it."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        fleet = cases.random_fleet(rng, 12, 5)
        try:
            system = bprr(fleet, 0.2)
        except UserError:
            continue
        held = np.zeros(5)
        for first, count, slots in zip(system.servers.first, system.servers.blocks, system.servers.slots, strict=True):
            if count:
                held[first : first + count] += slots // count
        assert (held >= 1).all()


def test_bprr_holds_what_memory_allows_however_many_come():
    """R_max by hand: (30 + 30 - 10 (2 + 2)) / (1 (2 + 2)) = 5 sessions, so each server hosts 30 / 15 = 2 blocks."""
    fleet = Fleet(
        memory_bytes=[30, 30], communication_s=[1, 1], compute_s=[1, 1], layers=2, block_bytes=10, cache_bytes=1
    )
    for rate in (1e3, 1e308):
        servers = bprr(fleet, rate).servers
        assert servers.blocks.tolist() == [2, 2]
        assert servers.slots.tolist() == [10, 10]


def test_alone_all_systems_take_their_nominal_time():
    """A single job on whole-model servers: what dispatch takes on the same chain."""
    fleet = Fleet(
        memory_bytes=[100, 100],
        communication_s=[0.5, 0.7],
        compute_s=[0.1, 0.2],
        layers=4,
        block_bytes=10,
        cache_bytes=1,
    )
    jobs = sized_jobs([0.0], [1.3])
    chain = dispatch_path(jobs, chains_of(compose(fleet, 1)))
    assert routed_path(jobs, bprr(fleet, 0.1)).finish_s == pytest.approx(chain.finish_s)
    assert chain.finish_s == pytest.approx([1.3 * (0.5 + 0.4)])


def test_jobs_of_tokens_need_token_times():
    _, system = lonely(3)
    tokens = with_work(system, np.array([[1.0, 0.0, 0.5]]), np.array([[0.0, 0.1, 0.0]]), [1.0, 10.0, 2.0])
    jobs = sized_jobs([0.0], [1.0])._replace(work=np.array([[1.0, 20.0, 4.0]]))
    assert routed_path(jobs, tokens).finish_s == pytest.approx([1 + 20 * 0.1 + 4 * 0.5])
    with pytest.raises(InputError, match="3 kinds of work"):
        routed_path(jobs, system)


def test_what_cannot_be_routed():
    fleet, system = lonely(3)
    with pytest.raises(UnknownName, match="weakest window"):
        petals(fleet, [0.1], rules_for(fleet, "best"), [0])
    with pytest.raises(InputError, match="permutation"):
        petals(fleet, [0.1], rules_for(fleet), [1])
    bare = Routed(system.policy, system.servers._replace(first=np.array([-1])), 1, 0.0)
    with pytest.raises(UserError, match="Some block is on no server"):
        routed_path(sized_jobs([0.0], [1.0]), bare)
    with pytest.raises(UserError, match="leaves some of the 9 blocks"):
        bprr(fleet.model_copy(update={"layers": 9}), 0.1)


def test_kernels_are_compiled_once_for_arrays_that_may_be_written_to_and_that_may_not():
    """A fleet holds arrays that may not, and its copies, here or in another process, hold others."""
    fleet = Fleet(
        memory_bytes=[40, 40, 60], communication_s=[1, 1, 2], compute_s=[1, 2, 1], layers=3, block_bytes=10,
        cache_bytes=1,
    )  # fmt: skip
    sent = copy.deepcopy(fleet)
    assert [fleet.memory_bytes.flags.writeable, sent.memory_bytes.flags.writeable] == [False, True]
    throughput = np.ones(3)
    throughput.flags.writeable = False
    jobs, found, counts = sized_jobs([0.0, 0.5, 0.5], [1.0, 1.0, 2.0]), [], []
    for one in (fleet, sent):
        asked = (bprr(one, 0.1), petals(one, [0.1] * 3, PetalsRules(0, 2, None, throughput), [0, 1, 2]))
        asked += (with_work(asked[0], one.communication_s[:, None], one.compute_s[:, None], [1.0]),)
        finish = [routed_path(jobs, system, contention=shared).finish_s for system in asked for shared in (False, True)]
        found.append((compose(one, 1).chains, [times.tolist() for times in finish]))
        counts.append({name: len(one.signatures) for name, one in kernels().items() if ".chains." in name})
    assert found[0] == found[1]
    assert counts[0] == counts[1]
