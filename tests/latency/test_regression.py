"""Fits by relative errors: exact data, bounds, odd measurements, and what cannot be told apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.latency.regression import held_out, independent, nonnegative_fit
from workbench.latency.validation.halves import relative_fit


@given(st.lists(st.floats(0.0, 10.0), min_size=3, max_size=3), st.integers(0, 2**32 - 1))
def test_exact_times_give_the_coefficients_back(coefficients, seed):
    columns = np.random.default_rng(seed).uniform(0.1, 10.0, (30, 3))
    seconds = columns @ coefficients + 1e-3
    full = np.column_stack([columns, np.ones(30)])
    assert full @ nonnegative_fit(full, seconds) == pytest.approx(seconds, rel=1e-3)


def test_a_few_odd_measurements_do_not_decide():
    size = np.arange(1.0, 41.0)
    columns = np.column_stack([np.ones(40), size])
    seconds = 2.0 + 3.0 * size
    seconds[::10] *= 5
    assert nonnegative_fit(columns, seconds) == pytest.approx([2.0, 3.0], rel=1e-3)


def test_no_coefficient_falls_below_its_least():
    size = np.arange(1.0, 21.0)
    columns = np.column_stack([np.ones(20), size])
    falling = 30.0 - size
    assert nonnegative_fit(columns, falling)[1] == 0.0
    found = nonnegative_fit(columns, 1.0 + 0.5 * size, np.array([0.0, 1.0]))
    assert found[1] == pytest.approx(1.0)


def test_what_is_left_out_is_predicted_by_the_rest():
    size = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    columns = np.column_stack([np.ones(6), size])
    seconds = 1.0 + size
    seconds[5] = 100.0
    predicted = held_out(columns, seconds, np.array([0, 0, 1, 1, 2, 2]))
    assert predicted[4:] == pytest.approx([6.0, 7.0])
    assert np.isnan(held_out(columns[:3], seconds[:3], np.array([0, 1, 1]))).any()


def test_columns_that_say_the_same_are_found():
    size = np.arange(1.0, 11.0)
    columns = np.column_stack([np.ones(10), np.full(10, 3e-3), 1e9 * size, np.zeros(10), size])
    assert independent(columns).tolist() == [True, False, True, False, False]


def test_a_kernel_fit_finds_what_made_the_times():
    size = np.geomspace(1, 1e4, 60)
    found = relative_fit(lambda x: x[0] + size / x[1], [1.0, 1.0], 5.0 + size / 20.0)
    assert found == pytest.approx([5.0, 20.0], rel=1e-2)
