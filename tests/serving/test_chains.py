"""Weights that come by chains, over the links that KV is sent by too: by hand, and whatever happens."""

from collections import Counter
from math import inf, isfinite, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_cases import growing, row
from sent_weights_cases import chain_scenario
from serving_cases import asked
from serving_invariants import (
    cluster_is_sound,
    rates_are_fair,
)

from workbench.errors import InputError
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import DECODE, DONE, PREFILL
from workbench.serving.model.scaled import DEAD, EMPTY, UP
from workbench.serving.policy.scalers import CHAIN_TIER, CHAINS, DRAM_TIER, NEAR_TIER, NONE, SSD_TIER
from workbench.serving.simulated.chains import Chain
from workbench.serving.simulated.run import Cluster, simulate


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def chained(rows, failures=(), **changes):
    """Eight bytes of weights over links of four bytes a second; all rows are wanted from 1 s on, without a start-up."""
    usual = {"kind": NONE, "min_rows": len(rows), "source": CHAINS, "control_s": 0.0, "egress": 4.0, "ingress": 4.0}
    return simulate(checked(growing([asked(0, 4, 9)], rows, failures, **usual | changes)))


def up(count, *hosts):
    """Rows on places of some hosts, so many of them up at first."""
    return [row(k, host, UP if k < count else EMPTY) for k, host in enumerate(hosts)]


def test_a_chain_takes_as_long_as_one_copy():
    """From the first row to the second and on to the third: two seconds, and a lag for the last one."""
    out = chained(up(1, 0, 0, 0), lag_s=0.25)
    same(out.loads[:, :6], [[1, 3, 1, CHAIN_TIER, 1, 0], [1, 3.25, 2, CHAIN_TIER, 1, 0]])
    same(out.chains, [[1, 3, 3, 0, 0, 8]])
    same(out.hops, [[0, 1], [0, 2]])


def test_engines_start_behind_the_weights():
    out = chained(up(1, 0, 0, 0), lag_s=0.25, control_s=0.5)
    same(out.loads[:, 1], [3.5, 3.75])


def test_rows_are_dealt_to_as_many_chains_as_may_be():
    """Two senders and three rows: the first and the third in one chain, the second in another."""
    out = chained(up(2, 0, 0, 0, 0, 0), chains=2)
    same(out.loads[:, 1:6], [[3, 2, CHAIN_TIER, 1, 0], [3, 4, CHAIN_TIER, 1, 0], [3, 3, CHAIN_TIER, 1, 1]])
    same(out.chains[:, 3:5], [[0, 0], [1, 1]])
    same(out.hops, [[0, 2], [0, 4], [1, 3]])


@pytest.mark.parametrize("near_s", [inf, 0.5])
def test_each_row_may_be_sent_its_weights_by_itself(near_s):
    """Two senders and three rows of other hosts: the first sender's way out is shared by two, so they take twice as
    long; with a fast network inside hosts too."""
    out = chained(up(2, 0, 0, 1, 1, 1), chains=0, near_s=near_s)
    same(out.loads[:, 1:6], [[5, 2, CHAIN_TIER, 1, 0], [3, 3, CHAIN_TIER, 1, 1], [5, 4, CHAIN_TIER, 1, 2]])
    same(out.chains[:, 3:5], [[0, 0], [1, 1], [2, 0]])
    same(out.hops, [[0, 2], [1, 3], [2, 4]])


def test_the_slowest_link_of_a_chain_counts():
    """Into the third row go two bytes a second, and so into the second."""
    out = chained(up(1, 0, 0, 0), ingress=[4, 4, 2])
    same(out.loads[:, 1], [5, 5])


@pytest.mark.parametrize(("decode_first", "source", "end_s"), [(1, 3, 3), (0, 0, 5)])
def test_kv_and_weights_share_the_way_out_of_who_sends_both(decode_first, source, end_s):
    """Eight bytes of weights from 1 s, and as many of KV when the prompt is done at 1 s: each gets half of four.

    Out of a row that decodes no KV goes, so that each gets all.
    """
    rows = [row(k, start_state=UP if k in (0, 1) and role == (PREFILL, DECODE)[k] else EMPTY, role=role)
            for k in range(3) for role in (PREFILL, DECODE)]  # fmt: skip
    given = growing(
        [asked(0, 8, 3)], rows, kind=NONE, min_rows=[2, 1], source=CHAINS, control_s=0.0, decode_first=decode_first
    )
    out = simulate(checked(given))
    same(out.chains, [[1, end_s, end_s, 0, source, 8]])
    same(out.loads[:, :4], [[1, end_s, 4, CHAIN_TIER]])
    same(out.flows, [[1, end_s, 0, 0, 3, 8]])


def test_followers_of_a_lost_row_begin_again_and_those_before_it_go_on():
    """Half is sent at 2 s, when the middle one of three fails: four bytes are left to the first, and eight for the
    third, which share the way out of the source. The first is up at 4 s, the third at 5 s."""
    out = chained(up(1, 0, 0, 0, 0), [(2.0, 2, inf)])
    same(out.chains, [[1, nan, 2, 0, 0, 8], [2, 4, 4, 0, 0, 4], [2, 5, 5, 1, 0, 8]])
    same(out.hops, [[0, 1], [0, 2], [0, 3], [1, 1], [2, 3]])
    same(out.loads[:, :3], [[1, 4, 1], [1, nan, 2], [1, nan, 3], [2, 5, 3]])


def test_followers_begin_again_from_the_nearest_copy_before():
    """All is sent at 3 s, and each further row has it a second later. The second one fails when it is up, at 4.5 s: the
    third and the fourth, which were to get theirs through it, begin again as one chain from the first."""
    out = chained(up(1, 0, 0, 0, 0, 0), [(4.5, 2, inf)], lag_s=1.0)
    same(out.chains, [[1, 3, 3, 0, 0, 8], [4.5, 6.5, 6.5, 1, 1, 8]])
    same(out.hops[4:], [[1, 3], [1, 4]])
    same(out.loads[:, :3], [[1, 3, 1], [1, 4, 2], [1, nan, 3], [1, nan, 4], [4.5, 6.5, 3], [4.5, 7.5, 4]])


def test_a_source_that_fails_is_replaced():
    out = chained(up(2, 0, 0, 0), [(2.0, 0, inf)], chains=1)
    same(out.chains, [[1, nan, 2, 0, 0, 8], [2, 4, 4, 1, 1, 8]])
    same(out.loads[:, :3], [[1, nan, 2], [2, 4, 2]])


def test_without_any_source_hosts_send_or_rows_read():
    """The host's memory sends two bytes a second; without leave to do so, both rows read 8 bytes at four together."""
    rows, memory = up(0, 0, 0), [[1], [0]]
    rows[1] = row(1, 1)
    out = chained(rows, hosts_send=1, cached=memory, host_egress=2.0)
    same(out.chains, [[1, 5, 5, 0, 2, 8]])
    same(out.loads[:, :5], [[1, 5, 0, CHAIN_TIER, 1], [1, 5, 1, CHAIN_TIER, 1]])
    out = chained(rows, cached=memory, host_egress=2.0)
    same(out.loads[:, :5], [[1, 1.5, 0, DRAM_TIER, 0], [1, 3, 1, SSD_TIER, 0]])


@pytest.mark.parametrize(("at_first", "end_s", "flows"), [
    (1, 3, [[1, 3, 3, 1, 0, 8]]), (2, 2, [[1, 2, 2, 0, 0, 4], [1, 2, 2, 0, 1, 4]]),
])  # fmt: skip
def test_a_ring_sends_each_host_its_weights_once(at_first, end_s, flows):
    """On the sender's own host a copy takes half a second. Two of another host get theirs over the link of the first,
    or, from two senders, a half over the link of each."""
    out = chained(up(at_first, 0, 0, 1, 1), chains=9, near_s=0.5)
    near = [[1, 1.5, 1, NEAR_TIER, 1, 0]] if at_first == 1 else []
    same(out.loads[:, :6], near + [[1, end_s, k, CHAIN_TIER, at_first, len(near)] for k in (2, 3)])
    same(out.chains, flows)


def test_a_ring_that_loses_a_member_begins_again():
    """At 1.5 s, with half of both halves sent; the other one of that host then gets all over its own link."""
    out = chained(up(2, 0, 0, 1, 1), [(1.5, 2, inf)], chains=9, near_s=0.5)
    same(out.loads[:, :3], [[1, nan, 2], [1, nan, 3], [1.5, 3.5, 3]])
    same(out.chains[:, :3], [[1, nan, 1.5], [1, nan, 1.5], [1.5, 3.5, 3.5]])


def test_chains_need_links():
    with pytest.raises(InputError, match=r"row 1, field 'source': .* give a network for weights that come by chains"):
        checked(growing([asked(0, 4, 9)], up(1, 0, 0), source=CHAINS))


def watched(lowered):
    """The run, looked at after each event, and how many bytes each flow of weights has moved at its rates."""
    cluster = Cluster(checked(lowered))
    weights, clock, links, moved = cluster.scaled.weights, cluster.clock, cluster.links, {}
    while clock.peek() <= min(lowered.until_s, np.finfo(float).max):
        before_s, rates = clock.now, [(flow, flow.rate) for flow in links.flows]
        clock.step()
        for flow, rate in rates:
            sent = rate * (clock.now - before_s) if isfinite(rate) else inf
            moved[flow] = min(flow.size, moved.get(flow, 0.0) + sent)
        cluster_is_sound(cluster)
        rates_are_fair(links.flows, links.capacity)
        chains = [one for one in weights.operations.values() if isinstance(one, Chain)]
        carried = {*cluster.router.migrations.coming, *(flow for one in chains for flow in one.flows)}
        assert carried == {*links.flows}
    return cluster, moved


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1).map(lambda seed: chain_scenario(np.random.default_rng(seed))))
def test_every_row_gets_all_its_bytes_once(lowered):
    cluster, moved = watched(lowered)
    run = cluster.outcome()
    assert (run.made[run.status == DONE] == lowered.requests.output[run.status == DONE]).all()
    rings = np.isfinite(lowered.scaling.near_s)
    loads = run.loads[(run.loads[:, 3] == CHAIN_TIER) & ~np.isnan(run.loads[:, 1])]
    for target, operation in loads[:, [2, 5]].astype(int).tolist():
        row = cluster.scaled.fleet.rows[target]
        passed = [moved.get(flow, 0.0) for flow, number, _, rows in cluster.scaled.log.chains
                  if number == operation and (rings[row.group] or row in rows)]  # fmt: skip
        assert sum(passed) == pytest.approx(lowered.scaling.bytes[row.model], rel=1e-9)
    assert (run.loads[:, 5] == np.sort(run.loads[:, 5])).all()
    pairs = run.loads[:, [2, 5]].tolist()
    assert len({*map(tuple, pairs)}) == len(pairs)  # a row has one load an operation
    ended = ~np.isnan(run.chains[:, 1])
    assert (run.chains[ended, 1] == run.chains[ended, 2]).all()


def test_the_scenarios_have_what_can_go_wrong():
    seen = Counter()
    for seed in range(350):
        lowered = checked(chain_scenario(np.random.default_rng(seed)))
        run = simulate(lowered)
        seen["chains"] += len(run.chains)
        seen["given up"] += (np.isnan(run.chains[:, 1]) & ~np.isnan(run.chains[:, 2])).sum()
        seen["by hosts"] += (run.chains[:, 4] >= len(lowered.instances.model)).sum()
        seen["near"] += (run.loads[:, 3] == NEAR_TIER).sum()
        seen["rings"] += ((run.loads[:, 3] == CHAIN_TIER) & (run.loads[:, 4] > 1)).sum()
        seen["long"] += (np.bincount(run.hops[:, 0].astype(int)) > 2).sum() if len(run.hops) else 0
        seen["parts of flows"] += (run.chains[:, 5] < lowered.scaling.bytes.min()).sum()
        seen["failures"] += (run.states[:, 2] == DEAD).sum()
        seen["KV"] += len(run.flows)
    assert min(seen.values()) > 20, seen
