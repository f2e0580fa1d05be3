"""Scale-ups that find no host copy: the sliding maximum against looking back, and against hosts with timers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.caching.kernels.misses import scale_up_misses_slow
from workbench.caching.model import instances_needed, scale_ups
from workbench.caching.simulated import simulate_scale_ups
from workbench.errors import InputError

NEEDS = st.lists(st.integers(0, 9), min_size=1, max_size=80)


def test_by_hand_with_a_keep_of_three_seconds():
    """1 → 3 misses two; 0 → 3 two seconds later finds all three; four seconds later (last use 4) none are left."""
    found = scale_ups([1, 3, 0, 3, 3, 0, 0, 0, 2], 3)
    assert found.started.tolist() == [0, 2, 0, 3, 0, 0, 0, 0, 2]
    assert found.missed.tolist() == [0, 2, 0, 0, 0, 0, 0, 0, 2]
    assert found.miss_share == pytest.approx(4 / 7)


@given(NEEDS, st.integers(1, 30))
def test_three_ways_agree(need, keep_s):
    found = scale_ups(need, keep_s)
    rows = scale_up_misses_slow(need, keep_s)
    assert list(zip(found.started.tolist(), found.missed.tolist(), strict=True)) == rows
    simulated = simulate_scale_ups(need, keep_s)
    assert simulated.started.tolist() == found.started.tolist()
    assert simulated.missed.tolist() == found.missed.tolist()


@given(NEEDS, st.integers(1, 20))
def test_keeping_longer_never_misses_more(need, keep_s):
    assert scale_ups(need, keep_s + 1).missed.sum() <= scale_ups(need, keep_s).missed.sum()


def test_need_of_a_second():
    """4 x 3,250 tokens are exactly what one instance of 13,000 tokens/s does; one token more takes two."""
    assert instances_needed([0.0, 1.999], [3250, 3251], 13_000).tolist() == [1, 2]
    assert np.isnan(scale_ups([2, 1, 0], 5).miss_share)


@pytest.mark.parametrize(
    ("arrival_s", "tokens"), [([0.0], [1, 2]), ([-1.0], [1]), ([float("inf")], [1]), ([0.0], [-1]), ([], [])]
)
def test_what_is_no_load_is_refused(arrival_s, tokens):
    with pytest.raises(InputError):
        instances_needed(arrival_s, tokens, 13_000)


def test_what_is_no_need_is_refused():
    with pytest.raises(InputError, match="need"):
        scale_ups([-1], 3)
    with pytest.raises(InputError, match="keep_s"):
        scale_ups([1], 0)
