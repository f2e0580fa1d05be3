"""Rows that compute prompts and are taken to decode while they are busy: by hand, conserved, and compiled as SimPy."""

from collections import Counter

import numpy as np
import pytest
from busy_role_cases import busy_scenario
from hypothesis import given, settings
from hypothesis import strategies as st
from scaled_role_cases import small_sending_scenarios
from scaling_cases import growing, role_places
from serving_cases import asked
from serving_invariants import (
    cluster_is_sound,
    rates_are_fair,
)
from serving_outcomes import differences

from workbench.errors import InputError
from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import DECODE, DONE, PREFILL
from workbench.serving.model.scaled import DRAINING, EMPTY, STARTING, UP
from workbench.serving.policy.scalers import CONCURRENCY, FIXED_TIER, NONE, QUEUE, RESIDENT_TIER
from workbench.serving.simulated.decoder import Decoder
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.prefiller import Prefiller
from workbench.serving.simulated.run import Cluster, simulate

TWO = [asked(0, 8, 9), asked(0, 8, 9)]
"""Both prompts are computed at 1 s; the first one's KV is on its way to the one that decodes until 3 s."""


def run(
    requests, mutate, kind=(NONE, QUEUE), requeue=0, rows=(PREFILL, PREFILL, DECODE, -1), stays=0, failures=(), **engine
):  # fmt: skip
    base = growing(requests, role_places(*rows, **engine), failures, kind=list(kind), min_rows=[0, 1])
    scaling = base.scaling._replace(
        mutate=np.array([0, mutate]), requeue=np.array([0, requeue]), stays=np.array([0, stays])
    )
    return simulate(checked(base._replace(scaling=scaling)))


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def test_a_busy_row_is_taken_and_another_one_starts_in_its_place():
    """At 2 s the second request waits for one that decodes. The first row is taken, which still sends until 3 s; at
    that time it decodes, without a load, and another one that computes prompts has been starting since 2 s, for 1.5 s.
    The second KV comes over by 5 s. Eight more tokens each."""
    out = run(TWO, mutate=2, limit=1)
    same(out.states[:6], [
        [2, 0, DRAINING], [2, 6, STARTING], [3, 0, EMPTY], [3, 1, STARTING], [3, 1, UP], [3.5, 6, UP],
    ])  # fmt: skip
    same(out.loads[:, :6], [[2, 3.5, 6, FIXED_TIER, 0, 0], [3, 3, 1, RESIDENT_TIER, 0, 1]])
    same(out.flows[:, :5], [[1, 3, 0, 0, 5], [3, 5, 1, 2, 1]])
    same(out.ticks[2:6], [[2, 0, 2, 2], [2, 1, 2, 1], [3, 0, 2, 2], [3, 1, 2, 2]])
    same(out.finish_s, [11, 13])


def test_only_rows_that_drain_are_taken_where_none_is_to_start_instead():
    """At 2 s nobody computes a prompt, and both rows drain; the first of them decodes from 3 s on."""
    out = run(TWO, mutate=1, kind=(CONCURRENCY, QUEUE), limit=1)
    same(out.states[:5], [[2, 2, DRAINING], [2, 0, DRAINING], [3, 0, EMPTY], [3, 1, STARTING], [3, 1, UP]])
    same(out.loads[:, :4], [[3, 3, 1, RESIDENT_TIER]])
    same(out.finish_s, [11, 13])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mutate": 1}, "none drains"),
        ({"mutate": 2, "rows": (PREFILL, DECODE, -1)}, "no other one is up"),
        ({"mutate": 0}, "no busy ones change"),
    ],
)
def test_rows_are_started_where_none_may_be_taken(changes, why):
    out = run([asked(0, 8, 9)] * 2, limit=1, **changes)
    assert set(out.loads[:, 3]) == {FIXED_TIER}, why
    assert (out.status == DONE).all()


def test_no_row_is_taken_without_a_place_for_another_one():
    out = run(TWO, mutate=2, limit=1, rows=(PREFILL, PREFILL, DECODE))
    assert not len(out.loads)
    same(out.finish_s, [11, 21])


@pytest.mark.parametrize(("requeue", "moves", "where"), [(0, 0, 0), (1, 1, 2)])
def test_a_queue_stays_or_goes_back_to_the_router(requeue, moves, where):
    """At 2 s, when the first row is taken, the fifth request waits behind the third one there."""
    out = run([asked(0, 8, 3)] * 6, mutate=2, requeue=requeue, slots=1)
    same(out.moves, [0, 0, 0, 0, moves, 0])
    same(out.prefill[:4], [0, 2, 0, 2])
    assert out.prefill[4] == where
    assert (out.status == DONE).all()


def test_kv_that_waits_stays_where_it_is():
    """The second KV of 4 tokens waits on the smaller row, which is taken at 2 s and has nothing else to do: it decodes
    at once, from 2 s on."""
    out = run([asked(0, 8, 9), asked(0, 4, 9)], mutate=2, limit=1, stays=1)
    same(out.states[:5], [[2, 2, DRAINING], [2, 6, STARTING], [2, 2, EMPTY], [2, 3, STARTING], [2, 3, UP]])
    same(out.loads[:, :4], [[2, 3.5, 6, FIXED_TIER], [2, 2, 3, RESIDENT_TIER]])
    same(out.flows[:, :5], [[1, 3, 0, 0, 5]])
    same(out.finish_s, [11, 10])
    same(out.instance, [5, 3])
    same(out.moves, [0, 0])


def test_kv_that_finds_no_slot_is_lost():
    """One at a time: the second and the fourth prompt end at 1 and 2 s on the row that is taken at 2 s. The second one
    decodes there from 2 to 10 s. The fourth one's 4 tokens are computed anew by 3 s, and wait behind the third one's 8;
    these leave at 10 s, those at 11 s, when the first one is done, and both come by 13 s: 8 tokens and 7 more."""
    out = run([asked(0, 8, 9), asked(0, 3, 9)] * 2, mutate=2, stays=1, slots=1)
    same(out.prefill, [0, 2, 0, 0])
    same(out.instance, [5, 3, 3, 5])
    same(out.moves, [0, 0, 0, 1])
    same(out.flows[:, :5], [[1, 3, 0, 0, 5], [10, 13, 2, 0, 3], [11, 13, 3, 0, 5]])
    same(out.finish_s, [11, 10, 21, 20])


def test_a_queue_does_not_wait_for_blocks_of_kv_that_stays():
    """Five blocks a row. The fourth prompt needs four of those behind the second one, whose KV waits in two, and whose
    row is taken at 2 s. It goes to the first row, which has four blocks when its KV is sent, from 1 to 4.25 s."""
    shapes = [(13, 7), (8, 9), (1, 1), (16, 4)]
    out = run([asked(0, *shape) for shape in shapes], mutate=2, stays=1, blocks=5)
    same(out.prefill, [0, 2, 0, 0])
    same(out.moves, [0, 0, 0, 1])
    same(out.first_token_s, [1, 1, 1, 5.25])
    same(out.finish_s[1], 10)
    assert (out.status == DONE).all()


def test_another_one_starts_where_the_only_one_that_decodes_fails_before_a_row_follows_it():
    """The first row is taken at 2 s. It has KV that comes to nobody at 2.5 s, and is to decode only when it has none:
    a row on the free place is there from 3 to 4.5 s on, takes it, and lets the first row follow."""
    out = run(TWO, mutate=2, limit=1, rows=(PREFILL, PREFILL, DECODE, -1, -1), failures=[(2.5, 2, np.inf)])
    starts = out.states[(out.states[:, 1] % 2 == 1) & (out.states[:, 2] == STARTING)]
    same(starts[:1], [[3, 9, STARTING]])
    assert out.states[out.states[:, 1] == 1][-1, 0] > 4.5
    assert (out.status == DONE).all()


@pytest.mark.parametrize(("mutate", "requeue"), [([1, 0], [0, 0]), ([0, 3], [0, 0]), ([0, 1], [2, 0])])
def test_wrong_numbers_are_refused(mutate, requeue):
    base = growing(TWO, role_places(PREFILL, DECODE))
    with pytest.raises(InputError, match=r"mutate|requeue"):
        checked(base._replace(scaling=base.scaling._replace(mutate=np.array(mutate), requeue=np.array(requeue))))


@settings(max_examples=100, deadline=None)
@given(
    small_sending_scenarios(),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)), min_size=8, max_size=8),
)
def test_small_clusters_end_the_same(base, drawn):
    groups, models = len(base.scaling.kind), len(base.scaling.bytes)
    mutate, requeue, stays = np.array(drawn[:groups]).T
    decodes = np.arange(groups) >= models
    changing = {"mutate": mutate * decodes, "requeue": requeue, "stays": stays * decodes}
    lowered = checked(base._replace(scaling=base.scaling._replace(**changing)))
    assert differences(run_compiled(lowered), simulate(lowered)) == []


def test_large_clusters_end_the_same(monkeypatch):
    """And rows are taken in every way, often enough for that to mean something; every fifth run is step by step."""
    seen, give_up, change = Counter(), Fleet.give_up_role, Fleet.change_role
    take_over, turned_back, keep_none = Decoder.take_over, Prefiller.turned_back, Prefiller.keep_no_kv

    def given_up(self, row, requeue, stays):
        seen["busy"] += row.instance.in_use
        seen["up" if row.state == UP else "draining"] += 1
        seen["queues that go back"] += bool(row.instance.queue) and requeue
        seen["KV that stays at once"] += stays and len(row.instance.leaving) > 0
        give_up(self, row, requeue, stays)

    def changed(self, old, new):
        seen["changed behind work" if old.state == DRAINING else "changed when warm"] += 1
        change(self, old, new)

    def taken_over(self, requests):
        left = take_over(self, requests)
        seen["KV that stayed"] += len(requests) - len(left)
        seen["KV that was lost"] += len(left)
        return left

    def came_back(self, request):
        seen["KV that turned back"] += self.keeps_kv
        turned_back(self, request)

    def kept_none(self):
        seen["KV that is sent after all"] += self.keeps_kv and len(self.leaving) > 0
        keep_none(self)

    monkeypatch.setattr(Decoder, "take_over", taken_over)
    monkeypatch.setattr(Prefiller, "turned_back", came_back)
    monkeypatch.setattr(Prefiller, "keep_no_kv", kept_none)
    monkeypatch.setattr(Fleet, "give_up_role", given_up)
    monkeypatch.setattr(Fleet, "change_role", changed)
    for seed in range(240):
        lowered = checked(busy_scenario(seed))
        outcome = simulate(lowered)
        assert differences(run_compiled(lowered, jumps=seed % 5 > 0), outcome) == [], f"seed {seed}"
        seen["moves"] += outcome.moves.sum()
        seen["helped"] += len(outcome.assists)
    assert not {name: count for name, count in seen.items() if count < 5}, seen


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**20).map(busy_scenario))
def test_nothing_is_lost_and_nobody_is_in_two_roles(lowered):
    """The run, looked at after each event."""
    cluster = Cluster(checked(lowered))
    fleet, clock = cluster.scaled.fleet, cluster.clock
    links = cluster.router.migrations.links
    while clock.peek() <= np.finfo(float).max:
        clock.step()
        cluster_is_sound(cluster)
        rates_are_fair(links.flows, links.capacity)
        assert all(one.state == DRAINING and one.instance.role == PREFILL for one in fleet.rows if one.changes_role)
    out = cluster.outcome()
    assert (out.made[out.status == DONE] == lowered.requests.output[out.status == DONE]).all()
    assert out.made.sum() == out.segments[:, 2].sum()
    roles = lowered.instances.role[out.flows[:, 3:5].astype(int)]
    assert (roles == [PREFILL, DECODE]).all()
    place = lowered.scaling.place
    apart = (out.status == DONE) & (out.made > 1) & (place[out.prefill] != place[out.instance])
    landed = {tuple(row) for row in out.flows[~np.isnan(out.flows[:, 1]), 2:5].astype(int).tolist()}
    assert {(r, out.prefill[r], out.instance[r]) for r in np.flatnonzero(apart).tolist()} <= landed
    resident = out.loads[out.loads[:, 3] == RESIDENT_TIER]
    assert (resident[:, 0] == resident[:, 1]).all()
