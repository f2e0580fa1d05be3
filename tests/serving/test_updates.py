"""New versions of weights: by hand, and two of them never mix in one request."""

from collections import Counter
from math import inf, nan

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_cases import growing, row
from sent_weights_cases import chain_scenario
from serving_cases import asked
from serving_invariants import everybody_is_somewhere, hosts_have_room, loads_belong_to_rows, places_are_held_once
from serving_outcomes import differences

from workbench.errors import InputError
from workbench.serving import Group, Pool, Scenario, StepForm, Update, serve
from workbench.serving.model import Updates, run_compiled
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import DECODE, DONE, INSIDE, PREFILL
from workbench.serving.model.scaled import DRAINING, EMPTY, STARTING, UP, WARM
from workbench.serving.policy.scalers import CHAIN_TIER, CHAINS, DRAM_TIER, NONE, SSD_TIER, TIERS
from workbench.serving.simulated.run import Cluster, simulate


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def updated(requests, rows, *times, failures=(), **changes):
    """Weights of the only model have a new version at some times; rows are wanted as many as may be, two at most."""
    lowered = growing(requests, rows, failures, **{"kind": NONE, "min_rows": 1, "max_rows": 2} | changes)
    updates = Updates(np.array(times, float), np.zeros(len(times), np.int64))
    return by_both(lowered._replace(updates=updates))


def by_both(lowered):
    """The run, by both engines alike."""
    lowered = checked(lowered)
    out = simulate(lowered)
    assert differences(run_compiled(lowered), out) == []
    return out


def test_an_old_row_finishes_what_it_has_and_a_new_one_takes_the_rest():
    """The first request runs until 6 s with the old weights. The second one comes at 3 s, after the update at 2.5 s,
    and waits for the row that starts at 3 s and is up 1.5 s later."""
    out = updated([asked(0, 4, 6), asked(3, 4, 2)], [row(0, start_state=UP), row(1)], 2.5)
    same(out.states, [[2.5, 0, DRAINING], [3, 1, STARTING], [4.5, 1, UP], [6, 0, WARM], [6, 0, EMPTY]])
    same(out.weight_version, [0, 1])
    same(out.restarts, [0, 0])
    same(out.finish_s, [6, 6.5])
    same(out.load_version, [1])


def test_a_request_that_must_go_on_with_other_weights_starts_anew():
    """Four tokens by 4 s, when the old row fails: with the new row, up at 4.5 s, all six are made again."""
    rows = [row(0, start_state=UP), row(1)]
    out = updated([asked(0, 4, 6)], rows, 2.5, failures=[(4.25, 0, inf)])
    same(out.weight_version, [1])
    same([out.restarts[0], out.moves[0], out.made[0]], [1, 1, 6])
    same(out.first_token_s, [5.5])
    same(out.finish_s, [10.5])
    same(out.segments, [[0, 0, 6, 1, 0]])
    same(out.wait_s, [0])


def test_what_was_in_memory_is_read_anew():
    """The host has the weights at first, and again once they are read: 8 bytes at 4 a second and half a second."""
    rows = [row(0), row(1)]
    requests = [asked(0, 4, 1), asked(6, 4, 1)]
    out = updated(requests, rows, 0.5, source=TIERS, cached=[[1]])
    same(out.loads[:, :4], [[1, 3.5, 0, SSD_TIER]])
    out = updated(requests, rows, 7.5, source=TIERS, cached=[[1]], min_rows=2)
    same(out.loads[:, :4], [[1, 2, 0, DRAM_TIER], [1, 2, 1, DRAM_TIER]])


def test_what_is_on_its_way_begins_again():
    """Half of eight bytes are read at 2 s, when they are out of date: all are read again."""
    out = updated([asked(0, 4, 1)], [row(0)], 2.0, source=TIERS)
    same(out.loads[:, :4], [[1, nan, 0, SSD_TIER], [2, 4.5, 0, SSD_TIER]])
    same(out.load_version, [0, 1])
    same(out.weight_version, [1])


def test_rows_with_old_weights_send_them_to_nobody():
    """First one row is wanted, which reads the new version. Where two are wanted, both old ones drain: the only place
    that is free has the new version by 9 s, and sends it at 21 s to the place of the old row that is done at 20 s."""
    rows = [row(k, start_state=UP if k == 0 else EMPTY) for k in range(3)]
    requests = [asked(0, 4, 20), asked(5, 4, 20, model=0)]
    given = growing(requests, rows, kind=NONE, min_rows=1, source=CHAINS, control_s=0.0, egress=4.0, ingress=4.0)
    out = by_both(given._replace(updates=Updates(np.array([1.5]), np.array([0]))))
    same(out.loads[:, :4], [[2, 4, 1, SSD_TIER]])
    more = given._replace(scaling=given.scaling._replace(min_rows=np.array([2])))
    out = by_both(more._replace(updates=Updates(np.array([6.5]), np.array([0]))))
    same(out.loads[:, :4], [[1, 3, 1, CHAIN_TIER], [7, 9, 2, SSD_TIER], [21, 23, 0, CHAIN_TIER]])
    same(out.chains[1:, 4], [2])


def roles(*states):
    return [row(k, start_state=UP if up == role else EMPTY, role=role) for k, up in enumerate(states)
            for role in (PREFILL, DECODE)]  # fmt: skip


def test_kv_goes_to_rows_of_its_own_version_while_they_drain():
    """Two prompts, computed one after the other, by 1 s and 2 s. The first decodes on the old row at the update of
    2.25 s, and the second's KV, 8 bytes from 2 s on, is on its way; both end with the old weights."""
    rows = roles(PREFILL, DECODE, -1, -1)
    rows = [one if k else row(0, start_state=UP, role=PREFILL, slots=1) for k, one in enumerate(rows)]
    out = updated([asked(0, 8, 9), asked(0, 8, 9)], rows, 2.25, min_rows=1)
    same(out.weight_version, [0, 0])
    same(out.restarts, [0, 0])
    same(out.instance, [3, 3])


def test_kv_that_nobody_decodes_any_more_is_left():
    """The old row that decodes is idle at 0.5 s and goes; the prompt is done at 1 s with old weights, for nobody: it is
    computed anew by the new prefill row, which is up at 2.5 s, and sent to the new decode row."""
    out = updated([asked(0, 8, 3)], roles(PREFILL, DECODE, -1, -1), 0.5, min_rows=1)
    same(out.states[:3], [[0.5, 0, DRAINING], [0.5, 3, WARM], [0.5, 3, EMPTY]])
    same([out.restarts[0], out.moves[0], out.weight_version[0]], [1, 1, 1])
    assert out.prefill[0] in (2, 4)
    same(out.first_token_s, [3.5])
    same(out.finish_s, [3.5 + 2 + 2])
    same(out.flows[:, 0], [3.5])


def test_a_scenario_says_what_is_new_and_its_timeline_when():
    """The clock of the table starts at 10 s."""
    group = Group(model="a", step=StepForm(compute=(1.0, 0, 0, 0, 0)), kv_tokens=64, count=1)
    asked_ = pl.DataFrame({"model": ["a"], "arrival_s": [10.0], "prompt_tokens": [8], "output_tokens": [3]})
    scenario = Scenario(groups=(group,), pool=Pool(hosts=1), updates=(Update(time_s=1.5, model="a"),))
    run = serve(scenario, asked_)
    assert (11.5, "model a", "new version", -1.0) in run.timeline.rows()
    assert run.requests.select("weight_version", "restarts").rows() == [(0, 0)]
    with pytest.raises(InputError, match="updates name 'b', which no group serves; name one of 'a'"):
        Scenario(groups=(group,), pool=Pool(hosts=1), updates=(Update(time_s=1.5, model="b"),))
    with pytest.raises(InputError, match="updates need a pool, in which instances come and go"):
        Scenario(groups=(group,), updates=(Update(time_s=1.5, model="a"),))


def any_update(seed):
    """One to four updates of any model of a cluster, half of them on the grid of its ticks."""
    rng = np.random.default_rng(seed)
    base = chain_scenario(rng)
    models, end_s = len(base.scaling.bytes), float(base.requests.arrival_s[-1]) + 4
    moments = np.floor(4 * rng.random(4) * end_s) / 4
    pairs = {*zip(moments.tolist(), rng.integers(0, models, 4).tolist(), strict=True)}
    time_s, model = zip(*sorted(pairs), strict=True)
    scaling = base.scaling._replace(
        min_rows=np.maximum(base.scaling.min_rows, rng.integers(0, 2, len(base.scaling.kind)))
    )
    scaling = scaling._replace(max_rows=np.maximum(scaling.max_rows, scaling.min_rows))
    return base._replace(updates=Updates(np.array(time_s), np.array(model)), scaling=scaling)


def watched(lowered):
    """The run, looked at after each event: whoever runs somewhere has that row's version, and tokens of no other."""
    cluster = Cluster(checked(lowered))
    fleet, clock, made_by = cluster.scaled.fleet, cluster.clock, {}
    while clock.peek() <= min(lowered.until_s, np.finfo(float).max):
        before = {request: request.made for request in cluster.requests}
        clock.step()
        places_are_held_once(fleet)
        hosts_have_room(fleet)
        loads_belong_to_rows(fleet, cluster.scaled.weights)
        everybody_is_somewhere(cluster)
        for one in fleet.rows:
            here = [*one.instance.running, *getattr(one.instance, "landed", []), *getattr(one.instance, "coming", [])]
            assert all(request.version == one.version for request in here)
            assert all(request.version in (-1, one.version) for request in one.instance.queue)
            assert one.instance.up <= fleet.is_new(one)
            assert one.state in (DRAINING, WARM) or not one.occupied or fleet.is_new(one)
        for request in cluster.requests:
            if request.made < before[request]:
                made_by[request] = []
            if request.made > before[request]:
                made_by.setdefault(request, []).append(request.version)
    for request, versions in made_by.items():
        assert len(set(versions)) <= 1
        assert len(versions) == request.made
    return cluster


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1).map(any_update))
def test_two_versions_never_mix(lowered):
    run = watched(lowered).outcome()
    assert (run.made[run.status == DONE] == lowered.requests.output[run.status == DONE]).all()
    assert (np.bincount(run.segments[:, 0], run.segments[:, 2], minlength=run.made.size) == run.made).all()
    assert (run.restarts <= run.moves).all()
    latest = np.bincount(lowered.updates.model, minlength=len(lowered.scaling.bytes))
    here = lowered.requests.model < latest.size
    assert (run.weight_version[here] <= latest[lowered.requests.model[here]]).all()
    started = lowered.instances.model[run.loads[:, 2].astype(int)]
    assert (run.load_version <= latest[started]).all()


def test_the_scenarios_have_what_can_happen():
    seen = Counter()
    for seed in range(150):
        lowered = checked(any_update(seed))
        run = simulate(lowered)
        seen["restarts"] += run.restarts.sum()
        seen["new versions"] += (run.weight_version > 0).sum()
        seen["old versions"] += (run.weight_version[run.status == DONE] == 0).sum()
        seen["loads of new versions"] += (run.load_version > 0).sum()
    assert min(seen.values()) > 20, seen


def test_updates_need_a_pool_and_a_model_and_an_order():
    given = growing([asked(0, 4, 1)], [row(0)])
    wrong = [([0.0], [1], "name a model that the pool serves"), ([-1.0], [0], "count time from"),
             ([1.0, 1.0], [0, 0], "sort the updates by time and model")]  # fmt: skip
    for time_s, model, sentence in wrong:
        with pytest.raises(InputError, match=sentence):
            checked(given._replace(updates=Updates(np.array(time_s), np.array(model))))
    now = Updates(np.array([1.0]), np.array([0]))
    with pytest.raises(InputError, match="has updates, but no pool"):
        checked(given._replace(updates=now, scaling=None))
    assert run_compiled(given._replace(updates=now)).status[0] != INSIDE
