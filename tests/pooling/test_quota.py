"""Algorithm 2's quotas: the worked example of the paper, and what follows from the formula for any batches."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.pooling.policy import fill_quotas, pace_of

STEPS = st.lists(st.floats(0.001, 0.2), min_size=1, max_size=12)


def quotas(steps, tbt_s, switches_s, most_s, floor=0.5):
    steps, found = np.array(steps), np.empty(len(steps))
    pace = fill_quotas(steps, tbt_s, switches_s, most_s, floor, found)
    return pace, found


def test_the_papers_example_with_its_cap_of_3_s():
    """Three batches, n = 0.1 / 0.025 = 4 each, c = 3 s: α = 3 / (4·3) + 3/4 = 1, q = 3 / (4·(1 - 3/4)) = 3 s, a round
    of 3 + 9 = 12 s, 120 tokens a batch, played back in 12 s."""
    pace, found = quotas([0.025] * 3, 0.1, 3.0, 3.0)
    assert pace == pytest.approx(1.0, rel=1e-12)
    assert found == pytest.approx([3.0] * 3, rel=1e-12)
    assert 3.0 + found.sum() == pytest.approx(12.0, rel=1e-12)
    assert found[0] / 0.025 == pytest.approx(120, rel=1e-12)


def test_the_same_inputs_with_the_cap_that_the_text_states():
    """Q = 4 s: α = 3/16 + 3/4 = 0.9375, q = 4 s, a round of 15 s, 160 tokens, 16 s of playback."""
    pace, found = quotas([0.025] * 3, 0.1, 3.0, 4.0)
    assert pace == pytest.approx(0.9375, rel=1e-12)
    assert found == pytest.approx([4.0] * 3, rel=1e-12)
    assert 3.0 + found.sum() == pytest.approx(15.0, rel=1e-12)


@given(STEPS, st.floats(0.02, 0.2), st.floats(0.01, 20.0), st.floats(0.5, 16.0), st.floats(0.05, 2.0))
def test_it_is_equation_2_and_every_batch_keeps_the_same_pace(steps, tbt_s, switches_s, most_s, floor):
    pace, found = quotas(steps, tbt_s, switches_s, most_s, floor)
    n = tbt_s / np.array(steps)
    off = switches_s / (n.min() * most_s) + (1 / n).sum()
    assert pace == pytest.approx(max(off, floor), rel=1e-9)
    assume(pace - (1 / n).sum() > 1e-6 * pace)  # else Eq 2 divides by what rounding left
    assert found == pytest.approx(switches_s / (n * (pace - (1 / n).sum())), rel=1e-5)
    # Round length c·α/(α - Σ1/n); tokens a batch times d, over the round, is 1/α.
    length = switches_s + found.sum()
    assert found / np.array(steps) * tbt_s * pace == pytest.approx(np.full(len(steps), length), rel=1e-5)


@given(STEPS, st.floats(0.02, 0.2), st.floats(0.01, 20.0), st.floats(0.5, 16.0))
def test_no_quota_exceeds_the_cap_and_off_the_floor_the_slowest_has_it(steps, tbt_s, switches_s, most_s):
    pace, found = quotas(steps, tbt_s, switches_s, most_s)
    assert found.max() <= most_s * (1 + 1e-9)
    if pace > 0.5 * (1 + 1e-9):
        assert found[int(np.argmax(steps))] == most_s


@pytest.mark.parametrize("many", [400, 5000])
def test_many_batches_neither_overflow_nor_underflow(many):
    """Products of n, as the published code has them, leave the range of float64 beyond some 200 batches of n = 40."""
    pace, found = quotas([0.0025] * many, 0.1, 0.5 * many, 4.0)
    assert pace == pytest.approx(many * (0.5 / 160 + 1 / 40))
    assert np.isfinite(found).all()
    assert found == pytest.approx([4.0] * many)


def test_without_switches_turns_are_as_short_as_they_can_be():
    pace, found = quotas([0.01, 0.02], 0.1, 0.0, 4.0)
    assert (pace, found.tolist()) == (0.5, [0.0, 0.0])
    assert pace_of(np.array([0.05]), 0.1, 0.0, 4.0, 0.5) == 0.5  # the floor itself: the cap, not 0 over 0
    assert quotas([0.05], 0.1, 0.0, 4.0)[1][0] == 4.0
