"""The compiled engine on clusters that change their size: jumps equal steps, and what must hold of any run holds."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_cases import growing, row, scaled_scenario, with_pipelines
from serving_cases import asked

from workbench.serving.model import run_compiled
from workbench.serving.model.allocating import allocation, end_of
from workbench.serving.model.lowered import DONE, REJECTED
from workbench.serving.model.scaled import DEAD, DRAINING, EMPTY, PIPED, STARTING, UP, WARM
from workbench.serving.model.scaling_tables import held_row_s
from workbench.serving.policy import chooser
from workbench.serving.policy.scalers import MULTICAST_TIER


def any_cluster(seed: int):
    rng = np.random.default_rng(seed)
    return with_pipelines(rng, scaled_scenario(rng)) if seed % 2 else scaled_scenario(rng)


scenarios = st.integers(0, 2**32 - 1).map(any_cluster)
MAY_FOLLOW = {
    EMPTY: {STARTING, DEAD},
    STARTING: {UP, PIPED, DEAD},
    PIPED: {UP, STARTING, DEAD},
    UP: {DRAINING, WARM, DEAD},
    DRAINING: {UP, WARM, DEAD},
    WARM: {UP, EMPTY, DEAD},
    DEAD: {EMPTY},
}


@settings(max_examples=300)
@given(scenarios)
def test_jumps_equal_steps_in_every_bit(lowered):
    for jumped, stepped in zip(run_compiled(lowered), run_compiled(lowered, jumps=False), strict=True):
        np.testing.assert_array_equal(jumped, stepped, strict=True)


@settings(max_examples=300)
@given(scenarios)
def test_requests_and_tokens_are_conserved(lowered):
    out, requests = run_compiled(lowered), lowered.requests
    done, rejected = out.status == DONE, out.status == REJECTED
    assert (out.made[done] == requests.output[done]).all()
    assert not out.made[rejected].any()
    made = np.zeros(out.made.size, np.int64)
    np.add.at(made, out.segments[:, 0], out.segments[:, 2])
    assert (made == out.made).all()
    assert (np.isnan(out.finish_s) == ~done).all()
    assert out.loads[:, 7].sum() <= done.sum()
    assert (out.peak_blocks <= lowered.instances.blocks).all()


@settings(max_examples=300)
@given(scenarios)
def test_rows_change_as_they_may_and_a_place_holds_one_at_a_time(lowered):
    out, scaling = run_compiled(lowered), lowered.scaling
    state, place, held_s = scaling.start_state.copy(), scaling.place, []
    before_s = 0.0
    for time_s, j, new in out.states.tolist():
        j = int(j)
        assert before_s <= time_s <= lowered.until_s
        assert new in MAY_FOLLOW[state[j]]
        held_s.append((time_s - before_s) * int((~np.isin(state, (EMPTY, DEAD))).sum()))
        before_s, state[j] = time_s, new
        holds = ~np.isin(state, (EMPTY, DEAD))
        assert (np.bincount(place[holds], minlength=1) <= 1).all()
    # The time that rows hold a place, added up over the log, is what the tables say.
    span_s = before_s + 1.0
    held_s.append(1.0 * int((~np.isin(state, (EMPTY, DEAD))).sum()))
    np.testing.assert_allclose(held_row_s(lowered, out, span_s), sum(held_s), rtol=1e-9, atol=1e-9)


@settings(max_examples=300)
@given(scenarios)
def test_what_is_allocated_and_active_adds_up(lowered):
    """To the time that rows hold their places, and to that of all steps where none was lost."""
    out, end_s = run_compiled(lowered), end_of(lowered, run_compiled(lowered))
    table = allocation(lowered, out, [f"{m}" for m in range(lowered.scaling.kind.size)], 2)
    assert (table["gpus_active"] <= table["gpus_allocated"]).all()
    assert (table["gpus_active"] >= 0).all()
    assert table.group_by("model").last().select("gpus_allocated", "gpus_active").sum().row(0) == (0, 0)
    seconds = table.with_columns(held_s=pl.col("time_s").shift(-1).over("model") - pl.col("time_s"))
    allocated, active = seconds.select(pl.col("gpus_allocated", "gpus_active") * pl.col("held_s")).sum().row(0)
    np.testing.assert_allclose(allocated, 2 * held_row_s(lowered, out, end_s), rtol=1e-9, atol=1e-9)
    if not out.failed_steps.any() and not np.isfinite(lowered.until_s):
        np.testing.assert_allclose(active, 2 * out.busy_s.sum(), rtol=1e-9, atol=1e-9)


@settings(max_examples=300)
@given(scenarios)
def test_steps_happen_only_where_a_row_serves(lowered):
    out, scaling = run_compiled(lowered), lowered.scaling
    for j in range(scaling.place.size):
        ends = out.iteration_end_s[out.iteration_at[j] : out.iteration_at[j + 1]]
        mine = out.states[out.states[:, 1] == j]
        times = np.concatenate([[-np.inf], mine[:, 0]])
        states = np.concatenate([[scaling.start_state[j]], mine[:, 2]])
        # A step that ends when the row changes was done before it: at an end of T draining rows become warm.
        assert np.isin(states[np.searchsorted(times, ends, side="left") - 1], (UP, DRAINING, PIPED)).all()


@settings(max_examples=300)
@given(scenarios)
def test_loads_and_bounds(lowered):
    out, scaling = run_compiled(lowered), lowered.scaling
    loads, states, model = out.loads, out.states, lowered.instances.model
    assert (np.diff(loads[:, 0]) >= 0).all()
    assert (np.diff(loads[:, 5]) >= 0).all()
    ended = ~np.isnan(loads[:, 1])
    assert (loads[ended, 1] >= loads[ended, 0]).all()
    came_up = states[states[:, 2] == UP][:, :2].tolist()
    assert all([end, j] in came_up for end, j in loads[ended][:, 1:3].tolist())
    piped = ~np.isnan(loads[:, 8])
    assert (ended | piped | ((loads[:, 7] == 0) & np.isnan(loads[:, 6]))).all()
    assert (loads[piped, 3] == MULTICAST_TIER).all()
    assert (loads[piped, 0] <= loads[piped, 8]).all()
    assert (loads[piped & ended, 8] < loads[piped & ended, 1]).all()
    m, want, have = out.ticks[:, 1].astype(int), out.ticks[:, 2], out.ticks[:, 3]
    changed = want != have
    assert (want[changed] >= scaling.min_rows[m][changed]).all()
    assert (want[changed] <= scaling.max_rows[m][changed]).all()
    assert (model[loads[:, 2].astype(int)] < scaling.kind.size).all()
    assert ((loads[:, 4] > 0) == (loads[:, 3] == 4)).all()


def test_the_logs_grow_as_long_as_the_run():
    """A request every 3 s for an hour and a place that two models take from each other: thousands of changes."""
    requests = [asked(3.0 * k, 4, 1, k % 2) for k in range(1200)]
    rows = [row(0, model=0), row(0, model=1)]
    out = run_compiled(growing(requests, rows, control_s=0.0, fixed_s=0.25, keep_s=0.5))
    assert (out.status == DONE).all()
    assert len(out.loads) == 1200
    assert len(out.ticks) > 2 * 3590


def test_a_policy_of_ones_own_and_a_model_that_nobody_serves():
    last = chooser(lambda places, outstanding, tokens, draw, turn: places.size - 1)
    rows = [row(0, start_state=UP), row(1, start_state=UP)]
    out = run_compiled(growing([asked(0, 4, 1), asked(0, 4, 1, model=5)], rows), last)
    assert out.instance.tolist() == [1, -1]
    assert out.status.tolist() == [1, 2]
