"""Ticks of logarithmic axes: labelled one by one, rising, round, and inside what is drawn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tick_labels import value_of_tick

from workbench.figures.ticks import log_ticks, short

POSITIVE = st.floats(1e-12, 1e15)


@given(POSITIVE, st.floats(1.0, 1e12))
def test_ticks_rise_inside_the_range_and_are_few(low, times):
    high = low * times
    ticks = log_ticks(low, high)
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= 13
    assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in ticks)
    if times >= 2:
        assert len(ticks) >= 2


@given(POSITIVE)
def test_a_label_says_its_number(number):
    assert value_of_tick(short(number)) == pytest.approx(number, rel=1e-5)


def test_labels_say_whole_numbers_not_first_digits():
    """Plotly's own labels for this axis would be 1, 2, 5, 10, 2, 5, 100."""
    assert [short(tick) for tick in log_ticks(1, 100)] == ["1", "2", "5", "10", "20", "50", "100"]
