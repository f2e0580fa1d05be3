"""Sample paths: compiled, plain and SimPy agree customer by customer, and meet cases worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.queueing import (
    Customers,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    batched_path,
    draw_customers,
    fastest_free_path,
    first_come_path,
    lindley_waits,
    processor_sharing_path,
    rotation_path,
)
from workbench.queueing.kernels.first_come import first_come_slow
from workbench.queueing.kernels.lindley import lindley_slow
from workbench.queueing.kernels.rotation import rotation_slow
from workbench.queueing.kernels.sharing import shared_service_slow
from workbench.queueing.kernels.unequal import fastest_free_slow
from workbench.queueing.model.paths import batch_progress
from workbench.queueing.policy import DISCIPLINES
from workbench.queueing.simulated import (
    simulate_batched,
    simulate_fastest_free,
    simulate_first_come,
    simulate_processor_sharing,
    simulate_rotation,
)


@st.composite
def on_a_grid(draw, most=40):
    """Customers at whole seconds with whole services, some of them 0: full of ties."""
    count = draw(st.integers(1, most))
    gaps = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    services = draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    return Customers(np.cumsum(gaps).astype(float), np.array(services, dtype=float))


@st.composite
def off_the_grid(draw, most=60):
    """Customers at random instants."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, most))
    return Customers(np.cumsum(rng.exponential(1.0, count)), rng.lognormal(0.0, 1.0, count))


def rows(path):
    return np.column_stack([path.start_s, path.finish_s])


@given(st.one_of(on_a_grid(), off_the_grid()), st.integers(1, 5))
def test_first_come_equals_its_twins(customers, servers):
    path = first_come_path(customers, servers)
    assert path.start_s.tolist() == first_come_slow(*(part.tolist() for part in customers), servers)
    assert (rows(simulate_first_come(customers, servers)) == rows(path)).all()


@given(st.one_of(on_a_grid(), off_the_grid()))
def test_lindley_equals_its_twin_and_the_recursion_of_one_server(customers):
    gaps = np.diff(customers.arrival_s, prepend=0.0)
    waits = lindley_waits(gaps, customers.service_s)
    assert waits.tolist() == pytest.approx(lindley_slow(gaps.tolist(), customers.service_s.tolist()), abs=1e-9)
    assert waits.tolist() == pytest.approx(first_come_path(customers).wait_s.tolist(), abs=1e-9)


@given(st.one_of(on_a_grid(), off_the_grid()), st.data())
def test_fastest_free_equals_its_twins(customers, data):
    classes = data.draw(st.integers(1, 4))
    rates = data.draw(st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0]), min_size=classes, max_size=classes))
    slots = data.draw(st.lists(st.integers(1, 3), min_size=classes, max_size=classes))
    path = fastest_free_path(customers, rates, slots)
    order = sorted(range(classes), key=lambda k: -rates[k])
    slow = fastest_free_slow(*customers, [rates[k] for k in order], [slots[k] for k in order])
    assert [(start, finish) for start, finish, _ in slow] == [tuple(row) for row in rows(path).tolist()]
    assert [order[place] for *_, place in slow] == path.place.tolist()
    twin = simulate_fastest_free(customers, rates, slots)
    assert (rows(twin) == rows(path)).all()
    assert (twin.place == path.place).all()


@given(off_the_grid())
def test_processor_sharing_equals_its_twins(customers):
    path = processor_sharing_path(customers)
    slow = shared_service_slow(*customers, 1 / np.arange(1, len(customers.arrival_s) + 1), 2**62)
    assert rows(path) == pytest.approx(np.array(slow), abs=1e-9)
    assert rows(simulate_processor_sharing(customers)) == pytest.approx(rows(path), abs=1e-9)


@given(off_the_grid(), st.integers(1, 4), st.integers(0, 4))
def test_batched_service_equals_its_twins(customers, batch, more_places):
    path = batched_path(customers, 0.3, 0.2, batch, batch + more_places)
    slow = shared_service_slow(*customers, batch_progress(0.3, 0.2, batch), batch + more_places)
    assert rows(path) == pytest.approx(np.array(slow), abs=1e-9, nan_ok=True)
    twin = simulate_batched(customers, 0.3, 0.2, batch, batch + more_places)
    assert rows(twin) == pytest.approx(rows(path), abs=1e-9, nan_ok=True)


@given(st.one_of(on_a_grid(), off_the_grid()), st.sampled_from(sorted(DISCIPLINES)), st.data())
@settings(max_examples=150)
def test_rotation_equals_its_twins(customers, discipline, data):
    queue = data.draw(st.lists(st.integers(0, 3), min_size=len(customers.arrival_s), max_size=len(customers.arrival_s)))
    walks = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=5))
    path = rotation_path(customers, queue, walks, discipline)
    assert (rows(simulate_rotation(customers, queue, walks, discipline)) == rows(path)).all()
    if all(walks):
        slow = rotation_slow(
            customers.arrival_s.tolist(),
            queue,
            max(queue) + 1,
            customers.service_s.tolist(),
            walks,
            DISCIPLINES[discipline],
        )
        assert slow == [tuple(row) for row in rows(path).tolist()]


@pytest.mark.parametrize(
    ("gaps", "service"),
    [
        (Exponential(mean_s=1 / 2.4), Lognormal(mean_s=1.0, scv=4.0)),
        (Gamma(mean_s=1 / 2.4, scv=9.0), Hyperexponential(mean_s=1.0, scv=4.0)),
    ],
)
def test_long_runs_agree_with_simpy_customer_by_customer(gaps, service):
    customers = draw_customers(gaps, service, 6000, seed=11)
    one = Customers(customers.arrival_s, customers.service_s / 3)
    assert (rows(first_come_path(customers, 3)) == rows(simulate_first_come(customers, 3))).all()
    unequal = fastest_free_path(customers, [0.5, 1.0, 2.0], [2, 1, 1])
    assert (rows(unequal) == rows(simulate_fastest_free(customers, [0.5, 1.0, 2.0], [2, 1, 1]))).all()
    assert rows(processor_sharing_path(one)) == pytest.approx(rows(simulate_processor_sharing(one)), abs=1e-8)
    blocked = batched_path(customers, 0.5, 0.25, 4, 5)
    assert blocked.blocked_share > 0.01
    assert rows(blocked) == pytest.approx(rows(simulate_batched(customers, 0.5, 0.25, 4, 5)), abs=1e-8, nan_ok=True)
    queue = np.random.default_rng(3).integers(4, size=6000)
    for discipline in DISCIPLINES:
        path = rotation_path(one, queue, [0.05, 0.1, 0.01], discipline)
        assert (rows(path) == rows(simulate_rotation(one, queue, [0.05, 0.1, 0.01], discipline))).all()


def test_two_servers_by_hand():
    path = first_come_path(Customers([0, 1, 2, 3], [5, 1, 4, 1]), servers=2)
    assert path.start_s.tolist() == [0, 1, 2, 5]
    assert path.in_system([0.0, 1.5, 2.0, 4.0, 6.0, 9.0]).tolist() == [0, 2, 2, 3, 2, 0]
    assert path.mean_in_system(0, 6) == (5 + 1 + 4 + 3) / 6
    assert path.mean_waiting(0, 6) == 2 / 6


def test_a_customer_that_waits_takes_the_slot_that_is_free_first_not_the_fast_one():
    path = fastest_free_path(Customers([0, 0, 1], [10, 4, 1]), [1.0, 0.5])
    assert path.place.tolist() == [0, 1, 1]
    assert path.start_s.tolist() == [0, 0, 8]


def test_jobs_that_share_by_hand():
    """Job 0 alone until 1, then halves: job 1 ends at 2, job 0 has 0.5 left, ends at 2.5. Batches: steps of 3 and 2."""
    assert processor_sharing_path(Customers([0, 1], [2, 0.5])).finish_s.tolist() == [2.5, 2.0]
    batch = batched_path(Customers([0, 0, 0, 0], [1, 1, 1, 1]), 1.0, 1.0, 2, 3)
    assert batch.finish_s.tolist()[:3] == [3.0, 3.0, 5.0]
    assert np.isnan(batch.finish_s[3])
    assert batch.blocked_share == 0.25


@pytest.mark.parametrize(
    ("discipline", "starts"), [("exhaustive", [0, 1, 2, 4]), ("gated", [0, 1, 5, 3]), ("one-limited", [0, 3, 7, 5])]
)
def test_rotation_by_hand(discipline, starts):
    """Two queues, walks and services of 1: customers 0 and 1 are in queue 0 at 0, 2 joins them at 1, 3 queue 1 at 3."""
    customers = Customers([0.0, 0.0, 1.0, 3.0], [1.0, 1.0, 1.0, 1.0])
    assert rotation_path(customers, [0, 0, 0, 1], [1.0], discipline).start_s.tolist() == starts


def test_same_seed_same_path_and_streams_of_their_own():
    make = lambda gaps, seed: draw_customers(gaps, Exponential(mean_s=1.0), 100, seed)  # noqa: E731
    one, again = make(Exponential(mean_s=1.0), 5), make(Exponential(mean_s=1.0), 5)
    assert (one.arrival_s == again.arrival_s).all()
    assert (one.service_s == make(Gamma(mean_s=1.0, scv=4.0), 5).service_s).all()
    assert (one.service_s != make(Exponential(mean_s=1.0), 6).service_s).any()


def test_idle_tours_cost_nothing_and_change_nothing():
    """A server that walks for hours between two customers: each start is the first visit at or after the arrival.

    Two queues, walks of 0.25 s: visits of queue 0 at even, of queue 1 at odd multiples of 0.25 s (binary fractions, so
    exact). The first customer leaves at 0.5, from where the tours count on.
    """
    arrival = [0.0, 3600.1, 1e7 + 0.1]
    customers, queue = Customers(arrival, [0.5, 0.5, 0.5]), [0, 1, 0]
    path = rotation_path(customers, queue, [0.25])
    assert path.start_s.tolist() == [0.0, 3600.25, 1e7 + 0.5]
    assert simulate_rotation(customers, queue, [0.25]).start_s.tolist() == path.start_s.tolist()


@pytest.mark.parametrize("walk", [0.0, 5e-324, 1e-9])
def test_walks_of_hardly_any_time_do_not_hang(walk):
    """The clock does not move by 5e-324 s; and 1e18 visits of 1e-9 s each are not followed one by one."""
    customers = Customers([0.0, 1e9], [1.0, 1.0])
    for run in (rotation_path, simulate_rotation):
        assert run(customers, [0, 1], [walk]).start_s[1] == pytest.approx(1e9, abs=1e-6)
