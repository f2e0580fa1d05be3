"""Chains, lanes and slow links: notes on BlitzScale §2.1 and notes on λScale §2.3."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.transfer.model import (
    chain_of_blocks_s,
    forwarding_chain_s,
    lanes_completion_s,
    layer_ready_s,
    run_times,
    slow_link_share,
    slow_link_share_of_chain,
    star_s,
    two_level,
)
from workbench.transfer.policy import binomial_pipeline, by_bandwidth, chain, sharded

LLAMA3_8B, NIC = 16.06e9, 12.5e9


def test_blitzscale_oracle_values_within_one_per_cent():
    one = forwarding_chain_s(LLAMA3_8B, [NIC], 2 * 2**20)[-1]
    small_units = forwarding_chain_s(LLAMA3_8B, [NIC] * 8, 2 * 2**20)[-1]
    whole_layers = forwarding_chain_s(LLAMA3_8B, [NIC] * 8, 436e6)[-1]
    star = star_s(8, LLAMA3_8B, NIC)
    assert [one, small_units, whole_layers, star] == pytest.approx([1.285, 1.286, 1.529, 10.28], rel=0.01)


@given(st.integers(1, 12), st.integers(1, 40), st.floats(0, 1e-2))
def test_a_forwarding_chain_on_equal_links_is_a_chain_of_blocks(hops, units, alpha_s):
    """With unit c = M/m and no latency the two formulas are the same."""
    bandwidth = [1e9] * hops
    blocks = chain_of_blocks_s([1e6 / 1e9] * hops, units)
    assert forwarding_chain_s(units * 1e6, bandwidth, 1e6).tolist() == pytest.approx(blocks.tolist(), rel=1e-9)
    later = forwarding_chain_s(units * 1e6, bandwidth, 1e6, alpha_s)
    assert later.tolist() == pytest.approx((blocks + alpha_s * np.arange(1, hops + 1)).tolist(), rel=1e-9)


def test_layers_arrive_in_order_and_the_last_one_ends_the_chain():
    ready = layer_ready_s(3, 32, NIC, layer_bytes=436e6, embedding_bytes=1.05e9, unit_bytes=2e6, alpha_s=1e-4)
    assert ready.shape == (3, 32)
    assert (np.diff(ready, axis=1) > 0).all()
    total = forwarding_chain_s(1.05e9 + 32 * 436e6, [NIC] * 3, 2e6, 1e-4)
    assert ready[:, -1].tolist() == pytest.approx(total.tolist(), rel=1e-12)


def test_the_faster_node_first_halves_its_downtime():
    """BlitzScale Figure 13: T2's link is twice T1's; S, T2, T1 halves T2's time and leaves T1's unchanged."""
    links = {0: 25e9, 1: 12.5e9, 2: 25e9}  # node 0 is the source, node 1 is T1, node 2 is T2
    order = by_bandwidth([links[node] for node in range(3)])
    assert order == [0, 2, 1]
    wrong, right = (forwarding_chain_s(LLAMA3_8B, [links[node] for node in o[1:]], 1e3) for o in ([0, 1, 2], order))
    assert right[0] == pytest.approx(wrong[1] / 2, rel=1e-6)  # T2
    assert right[1] == pytest.approx(wrong[0], rel=1e-6)  # T1


def test_slow_link_of_a_binomial_pipeline():
    """notes on λScale §2.3 [V]: n = 8, 16, 64, m = 256, B' = B/2."""
    expected = {8: 0.750, 16: 0.799, 64: 0.856}
    for nodes, share in expected.items():
        schedule = binomial_pipeline(nodes, 256)
        slow = (schedule.source == 0) & (schedule.target == 1)
        for run in ("dataflow", "barrier"):
            seconds = run_times(schedule, np.where(slow, 2.0, 1.0), run).held_s.max()
            assert round(schedule.steps / seconds, 3) == share
        assert slow_link_share(nodes, 0.5) == pytest.approx(share, abs=0.0015)


def test_a_faster_link_would_speed_up_nothing():
    """Why the formulas stop at 1: a step lasts as long as its other links; only the first has none beside this one."""
    schedule = binomial_pipeline(8, 256)
    fast = (schedule.source == 0) & (schedule.target == 1)
    assert run_times(schedule, np.where(fast, 0.5, 1.0), "barrier").held_s.max() == schedule.steps - 0.5
    assert slow_link_share(8, 1.0) == slow_link_share_of_chain(8, 256, 1.0) == 1.0


def test_slow_link_of_a_chain():
    for nodes in (8, 16, 64):
        for place in (0, nodes // 2, nodes - 2):
            schedule = chain(nodes, 256)
            seconds = run_times(schedule, np.where(schedule.source == place, 2.0, 1.0)).held_s.max()
            assert 0.505 <= schedule.steps / seconds <= 0.555
            assert slow_link_share_of_chain(nodes, 256, 0.5) == pytest.approx(schedule.steps / seconds, rel=1e-12)


def test_with_doubled_vertices_links_are_used_unequally():
    """In lock step the share is T / (T + u) for u uses of a link of half the rate; with n = 12 the uses differ."""
    for nodes, least, most in ((12, 0.65, 0.85), (8, 0.753, 0.747)):
        schedule = binomial_pipeline(nodes, 256)
        shares = []
        for source, target in {(0, 1), *zip(schedule.source.tolist(), schedule.target.tolist(), strict=True)}:
            slow = (schedule.source == source) & (schedule.target == target)
            seconds = run_times(schedule, np.where(slow, 2.0, 1.0), "barrier").held_s.max()
            shares.append(schedule.steps / seconds)
            assert shares[-1] == pytest.approx(schedule.steps / (schedule.steps + slow.sum()), rel=1e-12)
        assert min(shares) < least
        assert max(shares) > most
    with pytest.raises(InputError, match="power of two"):
        slow_link_share(12, 0.5)


@given(st.integers(2, 5), st.integers(1, 5), st.integers(1, 6), st.sampled_from([0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 7.0]))
def test_lanes_with_a_port_for_each_network_follow_the_formula(hosts, lanes, pieces, local_block_s):
    schedule = sharded(hosts * lanes, pieces * lanes, lanes)
    local = schedule.source // lanes == schedule.target // lanes
    times = run_times(schedule, np.where(local, local_block_s, 1.0), port=local.astype(int))
    expected = np.repeat(lanes_completion_s(hosts, lanes, pieces * lanes, 1.0, local_block_s), lanes)
    assert times.complete_s.tolist() == pytest.approx(expected.tolist(), rel=1e-9)


def test_many_pieces_approach_the_overlapped_bound():
    bound = two_level(64e9, 8, 12.5e9, 200e9)
    blocks = 8 * 500
    last = lanes_completion_s(2, 8, blocks, 64e9 / blocks / 12.5e9, 64e9 / blocks / 200e9)[-1]
    assert bound.overlapped_s <= last <= 1.01 * bound.overlapped_s
    assert bound.inter_host_s == pytest.approx(64e9 / 12.5e9 / 8)


def test_numbers_that_are_none_are_refused():
    with pytest.raises(InputError, match="hop_block_s"):
        chain_of_blocks_s([1, 0], 4)
    with pytest.raises(InputError, match="is empty"):
        forwarding_chain_s(1e9, [], 1e6)
    with pytest.raises(InputError, match="unit_bytes"):
        forwarding_chain_s(1e9, [1e9], 0)
