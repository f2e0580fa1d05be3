"""Ticks of logarithmic axes: labelled one by one, rising, round, and inside what is drawn."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.catalogue import running, spec
from workbench.figures import sketch
from workbench.figures.ticks import log_ticks, short

POSITIVE = st.floats(1e-12, 1e15)
PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "n": 1e-9}


def value_of(text):
    return float(text[:-1]) * PREFIXES[text[-1]] if text[-1] in PREFIXES else float(text)


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
    assert value_of(short(number)) == pytest.approx(number, rel=1e-5)


def test_labels_say_whole_numbers_not_first_digits():
    """Plotly's own labels for this axis would be 1, 2, 5, 10, 2, 5, 100."""
    assert [short(tick) for tick in log_ticks(1, 100)] == ["1", "2", "5", "10", "20", "50", "100"]


@pytest.mark.parametrize("id", list(spec.all_specs()))
def test_every_logarithmic_axis_states_its_ticks(id):
    entry = spec.find(id)
    layout = sketch(running.run(entry, {}, backends=entry.backends[0], quick=True))["layout"]
    axes = [axis for name, axis in layout.items() if name[1:].startswith("axis") and axis.get("type") == "log"]
    for axis in axes:
        assert len(axis["tickvals"]) >= 2
        assert len(axis["ticktext"]) == len(axis["tickvals"])
        for text, place in zip(axis["ticktext"], axis["tickvals"], strict=True):
            assert math.isclose(value_of(text), place, rel_tol=1e-5)
