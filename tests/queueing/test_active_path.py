"""Active models on a path: hand-made cases, the plain twin, SimPy, and the closed form."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.queueing import Customers, Deterministic, Exponential, active_models, draw_customers
from workbench.queueing.kernels.active import active_slow
from workbench.queueing.model.active_path import active_path
from workbench.queueing.simulated.active import simulate_active

requests = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=40).map(
    sorted
)


@given(requests)
def test_it_counts_as_the_plain_twin_and_simpy_do(rows):
    arrival, service, model = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    path = active_path(Customers(arrival, service), model)
    twin = simulate_active(Customers(arrival, service), model)
    assert np.array_equal(path.time_s, twin.time_s)
    assert np.array_equal(path.active, twin.active)
    finish = arrival + service
    for time_s in np.arange(-0.5, 45, 0.5):
        assert path.at([time_s])[0] == active_slow(arrival, finish, model, time_s)


def test_shares_and_mean_of_a_path_made_by_hand():
    """One model from 0 to 2 and 3 to 4, another from 1 to 4: 1, 2, 1, 2 active in four seconds."""
    path = active_path(Customers([0.0, 1.0, 3.0], [2.0, 3.0, 1.0]), [0, 1, 0])
    assert path.active.tolist() == [1, 2, 1, 2, 0]
    assert path.shares(0, 4).tolist() == [0, 0.5, 0.5]
    assert path.mean(0, 4) == 1.5
    assert path.mean(-4, 4) == 0.75


@pytest.mark.parametrize("service", [Exponential(mean_s=16.79), Deterministic(mean_s=16.79)])
def test_the_mean_does_not_depend_on_the_shape_of_the_time(service):
    """Aegaeon Theorem 3.1: 100 (1 - exp(-0.037 x 16.79)) = 46.27 active models, whatever the distribution."""
    drawn = draw_customers(Exponential(mean_s=1 / 3.7), service, 400_000, seed=1)
    model = np.random.default_rng(2).integers(100, size=400_000)
    expected = 100 * -math.expm1(-0.037 * 16.79)
    assert active_path(drawn, model).mean(200, drawn.arrival_s[-1]) == pytest.approx(expected, rel=0.005)
    assert active_models(0.037, 16.79, 100).mean_active == pytest.approx(expected)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="holds 1 values for 2 arrivals"):
        active_path(Customers([0.0, 1.0], [1.0, 1.0]), [0])
    with pytest.raises(InputError, match="not after from_s"):
        active_path(Customers([0.0], [1.0]), [0]).shares(3, 3)
