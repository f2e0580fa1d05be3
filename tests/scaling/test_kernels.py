"""Every closed form against its slow twin, and against cases by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.scaling.kernels import early, lanes, recompute, warm

times = st.floats(0, 100)
plain = settings(deadline=None, max_examples=60)


@plain
@given(st.lists(st.tuples(times, times, st.floats(0.1, 50)), min_size=1, max_size=12), st.lists(times, min_size=1))
def test_staircases_equal_their_twins(rows, at):
    begin, end, rate = (np.array(column) for column in zip(*rows, strict=True))
    begin[0], time = np.inf, np.array(at)
    for fast, slow in (
        (lanes.rate_over_time, lanes.rate_over_time_slow),
        (lanes.made_over_time, lanes.made_over_time_slow),
    ):
        out = np.empty(time.size)
        fast(time, begin, end, rate, out)
        assert out == pytest.approx(slow(time, begin, end, rate), abs=1e-9)


def test_a_staircase_by_hand():
    """Two lanes: 2 tokens/s from 1 to 3, 5 tokens/s from 2 on."""
    time, begin, end = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0]), np.array([3.0, np.inf])
    rate, made = np.empty(5), np.empty(5)
    lanes.rate_over_time(time, begin, end, np.array([2.0, 5.0]), rate)
    lanes.made_over_time(time, begin, end, np.array([2.0, 5.0]), made)
    assert rate.tolist() == [0, 2, 7, 5, 5]
    assert made.tolist() == [0, 0, 2, 9, 14]


@st.composite
def scale_outs(draw):
    complete = np.array(draw(st.lists(st.floats(1, 50), min_size=1, max_size=8)))
    forms = np.array([draw(st.one_of(st.floats(0.1, 60), st.just(np.inf))) for _ in complete])
    leave = np.full(complete.size, complete.max()) if draw(st.booleans()) else complete
    return forms, complete, leave


@plain
@given(scale_outs(), st.floats(0.01, 5), st.floats(0.01, 9), st.floats(0, 3))
def test_gains_equal_their_twins(case, alone_s, piped_s, resume_s):
    ours = early.steps_gained(*case, alone_s, piped_s, resume_s)
    assert ours == pytest.approx(early.steps_gained_slow(*case, alone_s, piped_s, resume_s), rel=1e-9, abs=1e-6)


@plain
@given(scale_outs(), st.floats(0.01, 5), st.floats(0.1, 3))
def test_the_paying_step_is_where_the_gain_is_nothing(case, alone_s, resume_s):
    forms, _, leave = case
    ours = early.paying_step_s(*case, alone_s, resume_s)
    if not (forms < leave).any():
        assert ours in (0.0, np.inf)
        return
    assert ours == pytest.approx(early.paying_step_slow(*case, alone_s, resume_s), rel=1e-6)
    assert early.steps_gained(*case, alone_s, 1.01 * ours, resume_s) < 0
    assert early.steps_gained(*case, alone_s, 0.99 * ours, resume_s) > 0


def test_two_nodes_by_hand():
    """One forms at 2 and both leave at 10, complete at 8 and 10: 8 s piped, 2 s lost. Steps of 1 s and of 2 s."""
    case = np.array([2.0, np.inf]), np.array([8.0, 10.0]), np.array([10.0, 10.0])
    assert early.steps_gained(*case, 1.0, 2.0, 0.0) == 4 - 2
    assert early.paying_step_s(*case, 1.0, 0.0) == 4.0
    assert early.steps_gained(*case, 1.0, 2.0, 1.0) == 4 - 2 - 1
    assert early.paying_step_s(*case, 1.0, 1.0) == pytest.approx(8 / 3)


@plain
@given(st.floats(1e-6, 1e-2), st.floats(0, 1), st.floats(1e-6, 1e-2), st.floats(0, 1))
def test_crossovers_equal_their_twin(token_s, least_s, move_token_s, move_fixed_s):
    low, high = recompute.crossovers(token_s, least_s, move_token_s, move_fixed_s)
    tokens = np.geomspace(1, 1e7, 300)
    near = np.isclose(tokens, low, rtol=1e-6) | np.isclose(tokens, high, rtol=1e-6)
    slow = recompute.faster_to_recompute_slow(tokens, token_s, least_s, move_token_s, move_fixed_s)
    equal = np.maximum(least_s, token_s * tokens) == move_fixed_s + move_token_s * tokens
    assert (((tokens > low) & (tokens < high)) == slow)[~near & ~equal].all()


def test_seconds_of_recomputing_and_moving_by_hand():
    """4 nodes: three quarters of 100 bytes a token come from elsewhere, three messages of 0.5 s."""
    out = np.empty(2)
    recompute.recompute_seconds(np.array([1.0, 10.0]), 2.0, 5.0, out)
    assert out.tolist() == [5, 20]
    recompute.move_seconds(np.array([0.0, 10.0]), 100.0, 4, 75.0, 0.5, out)
    assert out.tolist() == [1.5, 11.5]


@plain
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_warm_arrivals_equal_their_twin(nodes, blocks, seed):
    random = np.random.default_rng(seed)
    order = np.array([random.permutation(blocks) for _ in range(nodes)])
    size, out = random.uniform(0.1, 2, blocks), np.empty((nodes, blocks))
    warm.warm_arrivals(order, size, out)
    assert out == pytest.approx(warm.warm_arrivals_slow(order, size), rel=1e-12)
