"""Whatever happens, the SimPy engine loses and invents nothing: requests, tokens and KV blocks, after every event."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_cases import scenario, small_cached_scenarios, with_prefixes, with_ranks

from workbench.serving.model.lowered import DONE, INSIDE, REJECTED
from workbench.serving.simulated.run import Cluster


def any_scenario(seed):
    """Every other one has requests of several ranks, every third one has prefixes and caches."""
    rng = np.random.default_rng(seed)
    made = scenario(rng, most_requests=40)
    made = made if seed % 2 else with_ranks(rng, made)
    return made if seed % 3 else with_prefixes(rng, made)


scenarios = st.one_of(st.integers(0, 2**32 - 1).map(any_scenario), small_cached_scenarios())


def in_order(line):
    ranks = [request.rank for request in line]
    return ranks == sorted(ranks)


def watched(lowered):
    """The run, with every instance and every request looked at after each event."""
    cluster = Cluster(lowered)
    while cluster.clock.peek() <= min(lowered.until_s, np.finfo(float).max):
        cluster.clock.step()
        now, places, router = cluster.clock.now, cluster.instances, cluster.router
        for place in places:
            assert len(place.running) <= place.slots
            assert place.outstanding <= place.limit
            assert place.up or not place.outstanding
            assert place.blocks.free >= 0
            assert place.blocks.in_use * place.blocks.tokens_each == sum(request.room for request in place.running)
            assert all(request.stored <= request.room for request in place.running)
            assert all(request.room == request.stored == 0 for request in place.queue)
            assert len(place.prefixes.ids) <= place.prefixes.capacity
            assert place.up or not place.prefixes.ids
            assert in_order(place.queue)
            assert in_order(place.running)
        assert all(map(in_order, router.lines))
        held = [r.index for place in places for r in (*place.running, *place.queue)]
        held += [r.index for line in router.lines for r in line]
        gone = [r.index for r in cluster.requests if r.status != INSIDE]
        come = [r.index for r in cluster.requests if r.arrival_s < now]
        assert len({*held, *gone}) == len(held) + len(gone)
        assert {*come} <= {*held, *gone}
    return cluster.outcome()


@settings(max_examples=60)
@given(scenarios)
def test_nothing_is_lost(lowered):
    run, requests = watched(lowered), lowered.requests
    status, made, segments = run.status, run.made, run.segments
    assert ((made >= 0) & (made <= requests.output)).all()
    assert (made[status == DONE] == requests.output[status == DONE]).all()
    assert (made[status == REJECTED] == 0).all()
    if lowered.until_s == np.inf and (lowered.failures.back_s < np.inf).all():
        assert (status != INSIDE).all()
    assert (np.bincount(segments[:, 0], segments[:, 2], minlength=made.size) == made).all()
    assert (segments[:, 2] > 0).all()
    assert (np.isnan(run.finish_s) == (status != DONE)).all()
    assert (np.isnan(run.first_token_s) == (made == 0)).all()
    assert not (np.isnan(run.wait_s) & ~np.isnan(run.first_token_s)).any()
    assert (run.instance[~np.isnan(run.wait_s)] >= 0).all()
    admitted = 1 + run.evictions + run.moves
    assert ((run.cached >= 0) & (run.cached <= admitted * (requests.prompt + np.maximum(made - 1, 0)))).all()


@settings(max_examples=60)
@given(scenarios)
def test_segments_tell_the_times_of_all_tokens(lowered):
    """Token by token: the first and the last at the times given, never two at once, the longest runs there are."""
    cluster = Cluster(lowered)
    cluster.run(lowered.until_s)
    run = cluster.outcome()
    ends = np.split(run.iteration_end_s, run.iteration_at[1:-1])
    assert all((np.diff(times) > 0).all() for times in ends)
    for busy_s, times in zip(run.busy_s, ends, strict=True):
        assert busy_s <= (times[-1] * (1 + 1e-9) if times.size else 0)
    for request, made in enumerate(run.made):
        rows = run.segments[run.segments[:, 0] == request]
        assert (rows[:, 1] == np.cumsum(rows[:, 2]) - rows[:, 2]).all()
        times = [ends[j][first + k] for _, _, count, j, first in rows for k in range(count)]
        assert len(times) == made
        assert (np.diff(times) > 0).all()
        if made:
            assert times[0] == run.first_token_s[request]
        if made and run.status[request] == DONE:
            assert times[-1] == run.finish_s[request]
        follows = rows[:-1, 4] + rows[:-1, 2]
        assert not ((follows == rows[1:, 4]) & (rows[:-1, 3] == rows[1:, 3])).any()


def test_the_scenarios_have_what_can_go_wrong():
    """Or else the tests above, and those against compiled runs, would say little."""
    seen = dict.fromkeys(["cached", "evictions", "moves", "rejected", "inside", "failed steps", "segments broken"], 0)
    for seed in range(60):
        cluster = Cluster(lowered := any_scenario(seed))
        cluster.run(lowered.until_s)
        run = cluster.outcome()
        seen["cached"] += run.cached.sum()
        seen["evictions"] += run.evictions.sum()
        seen["moves"] += run.moves.sum()
        seen["rejected"] += (run.status == REJECTED).sum()
        seen["inside"] += (run.status == INSIDE).sum()
        seen["failed steps"] += run.failed_steps.sum()
        seen["segments broken"] += (run.segments[:, 1] > 0).sum()
    assert min(seen.values()) > 20, seen
