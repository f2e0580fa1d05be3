"""Groups of a model and role that scale apart: by hand, and whatever happens."""

from collections import Counter
from math import nan

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from role_pool_cases import role_pool
from scaling_cases import growing, role_places
from serving_cases import asked, with_prefixes, with_ranks
from serving_invariants import (
    cluster_is_sound,
    rates_are_fair,
)

from workbench.scaling.policy.role_counts import RoleLoad, RoleRates, role_changes
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import DECODE, DONE, INSIDE, PREFILL
from workbench.serving.model.scaled import DEAD, DRAINING, EMPTY, STARTING, UP, WARM
from workbench.serving.policy.scalers import CONCURRENCY, FIXED_TIER, NONE, QUEUE, RESIDENT_TIER, ROLES
from workbench.serving.policy.scaling import decide_role
from workbench.serving.simulated.run import Cluster, simulate


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def test_a_warm_row_changes_its_role_at_no_cost():
    """At 1 s the second prefill row has nothing to do and is warm; at 2 s it decodes, without a load, and the KV that
    has waited since 1 s is sent: 8 bytes at 4 a second. The first prefill row drains from 2 s on, but is not warm
    before its KV is gone. Two more tokens by 6 s."""
    out = simulate(checked(growing([asked(0, 8, 3)], role_places(PREFILL, PREFILL), kind=CONCURRENCY)))
    same(out.states, [
        [1, 2, WARM], [2, 0, DRAINING], [2, 2, EMPTY], [2, 3, STARTING], [2, 3, UP], [4, 0, WARM],
    ])  # fmt: skip
    same(out.loads, [[2, 2, 3, RESIDENT_TIER, 0, 0, nan, 1, nan]])
    same(out.flows, [[2, 4, 0, 0, 3, 8]])
    same(out.finish_s, [6])
    same(out.ticks[:6], [[1, 0, 1, 2], [1, 1, 0, 0], [2, 0, 0, 1], [2, 1, 1, 0], [3, 0, 0, 0], [3, 1, 1, 1]])


def test_a_role_changes_before_a_free_place_is_taken():
    """One row is wanted to decode at 1 s, which is the warm one. The second request's KV waits for another one from
    2.2 s on, which starts on the free place at 3 s, for 1.5 s."""
    requests = [asked(0, 4, 9), asked(1.2, 4, 9)]
    rows = role_places(PREFILL, PREFILL, -1, limit=1)
    out = simulate(checked(growing(requests, rows, kind=[NONE, QUEUE], min_rows=[0, 1], max_rows=[1, 2])))
    same(out.loads[:, :4], [[1, 1, 3, RESIDENT_TIER], [3, 4.5, 5, FIXED_TIER]])


def test_prompts_that_nobody_will_ever_decode_let_the_ticks_end():
    """No row may decode: the first prompt keeps two of three blocks, which the second waits for; nothing goes on."""
    rows = role_places(PREFILL, blocks=3)
    out = simulate(checked(growing([asked(0, 8, 2), asked(0, 8, 2)], rows, kind=NONE, max_rows=[1, 0])))
    same(out.status, [INSIDE, INSIDE])
    same(out.made, [1, 0])
    assert out.ticks[-1, 0] == 4  # the first quiet tick is the one at 2 s


def test_rows_that_prefill_fail_with_what_they_send():
    """The KV leaves at 1 s, and the place fails at 2 s: the prompt is computed anew on the other place by 3 s."""
    rows = role_places(PREFILL, PREFILL, DECODE)
    out = simulate(checked(growing([asked(0, 8, 3)], rows, [(2.0, 0, 9.0)], kind=NONE)))
    same(out.flows, [[1, nan, 0, 0, 5, 8], [3, 5.25, 0, 2, 5, 9]])
    same(out.moves, [1])
    same(out.finish_s, [6.25])
    same(out.states, [[2, 0, DEAD], [2, 1, DEAD], [9, 0, EMPTY], [9, 1, EMPTY]])


loads = st.builds(
    RoleLoad, waiting_tokens=st.integers(0, 2**18), stored_tokens=st.integers(0, 2**18), blocks=st.integers(0, 9000),
    prefill=st.integers(1, 16), decode=st.integers(1, 16),
)  # fmt: skip


@given(loads, st.integers(1, 9), st.integers(1, 9))
def test_roles_are_those_of_the_planner(load, least, most):
    """The rule that is written down apart, by its own record, with rates that divide without rounding."""
    rates = RoleRates(
        prefill_tokens_per_s=8192, migrated_tokens_per_s=65536, blocks=1024, prefill_bounds_s=(0.5, 0.75),
        memory_bounds=(0.75, 0.875), migration_bounds=(0.25, 0.5),
    )  # fmt: skip
    par = np.array([8192, 0.5, 0.75, 1024, 0.75, 0.875, 0.25 * 65536, 0.5 * 65536])
    wanted = role_changes(load, rates, least + most, least + most, least, least)
    for decodes, n, change in ((False, load.prefill, wanted.prefill), (True, load.decode, wanted.decode)):
        count = decide_role(decodes, par, load.waiting_tokens, load.stored_tokens, load.blocks, n, load.decode)
        assert max(least, min(count, least + most)) - n == change


def test_decoding_is_scaled_by_what_prefill_holds():
    """Three prompts of eight tokens hold six blocks on the row that prefills, of at most two an instance: at 1 s, with
    nothing to decode yet, three instances decode."""
    par = [[1000.0, 1, 1, 2, 1, 1, 1000, 1000]] * 2
    rows = role_places(PREFILL, -1, -1, -1)
    out = simulate(checked(growing([asked(0.5, 8, 3)] * 3, rows, kind=ROLES, par=par, min_rows=1)))
    same(out.ticks[:2], [[1, 0, 1, 1], [1, 1, 3, 0]])


def any_pool(seed):
    rng = np.random.default_rng(seed)
    made = role_pool(rng)
    made = made if seed % 2 else with_ranks(rng, made)
    return made if seed % 3 else with_prefixes(rng, made)


def watched(lowered):
    """The run, looked at after each event."""
    cluster = Cluster(checked(lowered))
    clock = cluster.clock
    links = cluster.router.migrations.links
    while clock.peek() <= min(lowered.until_s, np.finfo(float).max):
        clock.step()
        cluster_is_sound(cluster)
        rates_are_fair(links.flows, links.capacity)
    return cluster.outcome()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1).map(any_pool))
def test_nothing_is_lost_where_roles_scale(lowered):
    run = watched(lowered)
    assert (run.made[run.status == DONE] == lowered.requests.output[run.status == DONE]).all()
    assert run.made.sum() == run.segments[:, 2].sum()
    loads = run.loads[run.loads[:, 3] == RESIDENT_TIER]
    assert (loads[:, 0] == loads[:, 1]).all()
    ended = ~np.isnan(run.flows[:, 1])
    assert (run.flows[ended, 1] >= run.flows[ended, 0] + lowered.network.latency_s).all()
    roles = lowered.instances.role[run.flows[:, 3:5].astype(int)]
    assert (roles == [PREFILL, DECODE]).all()


def test_the_scenarios_have_what_can_go_wrong():
    seen = Counter()
    for seed in range(150):
        lowered = checked(any_pool(seed))
        run = simulate(lowered)
        states = run.states[:, 2]
        seen["changes of role"] += (run.loads[:, 3] == RESIDENT_TIER).sum()
        seen["drained"] += ((states[:-1] == DRAINING) | (states[1:] == WARM)).sum()
        seen["failures"] += (states == DEAD).sum()
        seen["cancelled"] += np.isnan(run.flows[:, 1]).sum()
        seen["landed"] += (run.flows[:, 1] > 0).sum()
        seen["moves"] += run.moves.sum()
        seen["by roles"] += (
            (run.ticks[:, 2] > run.ticks[:, 3]) & (lowered.scaling.kind[run.ticks[:, 1].astype(int)] == ROLES)
        ).sum()
        seen["done"] += (run.status == DONE).sum()
    assert min(seen.values()) > 20, seen
