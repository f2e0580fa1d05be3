"""Whatever a cluster that changes its size does, no place is held twice and nothing is lost, after every event."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from piped_cases import small_piped_scenarios
from scaling_cases import failing_multicasts, scaled_scenario, small_scaled_scenarios, with_pipelines
from serving_invariants import (
    cluster_is_sound,
)

from workbench.serving.model.lowered import DONE
from workbench.serving.model.scaled import DEAD, DRAINING, EMPTY, PIPED, STARTING, UP, WARM
from workbench.serving.simulated.run import Cluster

scenarios = st.integers(0, 2**32 - 1).map(lambda seed: scaled_scenario(np.random.default_rng(seed), most_requests=30))

FOLLOWS = {
    EMPTY: {STARTING, DEAD}, STARTING: {PIPED, UP, DEAD}, PIPED: {STARTING, UP, DEAD}, UP: {DRAINING, WARM, DEAD},
    DRAINING: {UP, WARM, DEAD}, WARM: {UP, EMPTY, DEAD}, DEAD: {EMPTY},
}  # fmt: skip
"""What a row may become."""


def watched(lowered):
    """The run, looked at after each event."""
    cluster = Cluster(lowered)
    clock = cluster.clock
    while clock.peek() <= min(lowered.until_s, np.finfo(float).max):
        clock.step()
        cluster_is_sound(cluster)
    return cluster.outcome()


def tables_agree(lowered, run):
    """The tables tell one story: rows change as they may, and what comes up was loaded."""
    given, states, loads = lowered.scaling, run.states, run.loads
    assert (np.diff(states[:, 0]) >= 0).all()
    assert (np.diff(run.ticks[:, 0]) >= 0).all()
    now = given.start_state.tolist()
    taken = []
    for _, row, state in states.tolist():
        assert state in FOLLOWS[now[int(row)]]
        if state == STARTING and now[int(row)] == EMPTY:
            taken.append(row)
        now[int(row)] = int(state)
    up = states[states[:, 2] == UP]
    piped = states[states[:, 2] == PIPED]
    for start_s, end_s, row, *_, first_token_s, _, piped_s in loads.tolist():
        assert np.isnan(end_s) or start_s <= end_s
        assert np.isnan(piped_s) or start_s <= piped_s
        assert np.isnan(piped_s) or np.isnan(end_s) or piped_s <= end_s
        assert np.isnan(piped_s) or [piped_s, row] in piped[:, :2].tolist()
        assert np.isnan(end_s) or [end_s, row] in up[:, :2].tolist()
        assert np.isnan(first_token_s) or first_token_s > np.fmin(piped_s, end_s)
    assert (~np.isnan(loads[:, 8])).sum() == len(piped)
    assert len(taken) <= len(loads)
    assert loads[:, 7].sum() <= (run.status == DONE).sum()
    assert (np.diff(loads[:, 5]) >= 0).all()
    assert len(set(map(tuple, loads[:, [2, 5]].tolist()))) == len(loads)  # a row has one load an operation
    least, most = given.min_rows[run.ticks[:, 1].astype(int)], given.max_rows[run.ticks[:, 1].astype(int)]
    have, want = run.ticks[:, 3], run.ticks[:, 2]
    assert ((want == have) | ((least <= want) & (want <= most))).all()
    assert run.made.sum() == run.segments[:, 2].sum()


@settings(max_examples=60, deadline=None)
@given(scenarios)
def test_nothing_is_lost_and_nothing_held_twice(lowered):
    tables_agree(lowered, watched(lowered))


@settings(max_examples=100, deadline=None)
@given(small_scaled_scenarios())
def test_nor_in_small_clusters(lowered):
    tables_agree(lowered, watched(lowered))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1).map(np.random.default_rng))
def test_nor_where_rows_serve_in_pipelines(rng):
    lowered = with_pipelines(rng, failing_multicasts(rng))
    tables_agree(lowered, watched(lowered))


@settings(max_examples=100, deadline=None)
@given(small_piped_scenarios())
def test_nor_in_small_clusters_of_these(lowered):
    tables_agree(lowered, watched(lowered))
