"""The dataflow, lock-step and fairness kernels against their slow twins and against what must always hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.transfer.kernels.fairness import max_min_fair
from workbench.transfer.kernels.slow import barrier_slow, dataflow_slow, max_min_fair_slow
from workbench.transfer.model import run_times
from workbench.transfer.policy import make_schedule


@given(
    st.sampled_from(["chain", "binomial_pipeline", "binary_tree", "binomial_tree", "sequential"]),
    st.integers(2, 9),
    st.integers(1, 6),
    st.integers(0, 2**32 - 1),
)
def test_dataflow_and_barrier_equal_their_twins(name, nodes, blocks, seed):
    schedule = make_schedule(name, nodes, blocks)
    travel = np.random.default_rng(seed).uniform(0.5, 3.0, len(schedule.step))
    busy = travel * np.random.default_rng(seed + 1).uniform(0.2, 1.0, len(travel))
    rows = list(zip(schedule.source.tolist(), schedule.target.tolist(), schedule.block.tolist(), strict=True))
    held = {(0, block): 0.0 for block in range(blocks)}
    slow = dataflow_slow(rows, held, busy.tolist(), travel.tolist())
    assert run_times(schedule, travel, busy_s=busy).end_s.tolist() == slow
    in_steps = run_times(schedule, travel, "barrier")
    assert in_steps.end_s.tolist() == pytest.approx(barrier_slow(schedule.step.tolist(), travel.tolist()), rel=1e-12)


def test_a_dataflow_run_is_never_later_than_lock_step():
    schedule = make_schedule("binomial_pipeline", 13, 20)
    travel = np.random.default_rng(5).uniform(0.5, 3.0, len(schedule.step))
    assert (run_times(schedule, travel).held_s <= run_times(schedule, travel, "barrier").held_s + 1e-9).all()


def rates_of(paths, capacities):
    first = np.cumsum([0, *(len(path) for path in paths)])
    resources = np.array([resource for path in paths for resource in path], dtype=np.int64)
    rates = np.empty(len(paths))
    max_min_fair(first, resources, np.array(capacities, dtype=float), rates)
    return rates


@st.composite
def flows(draw):
    capacities = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=8))
    path = st.lists(st.integers(0, len(capacities) - 1), min_size=1, max_size=4, unique=True)
    return draw(st.lists(path, min_size=1, max_size=10)), capacities


@given(flows())
def test_max_min_fair_equals_its_exact_twin(case):
    paths, capacities = case
    assert rates_of(paths, capacities) == pytest.approx(
        [float(r) for r in max_min_fair_slow(paths, capacities)], rel=1e-9
    )


@given(flows())
def test_no_resource_over_capacity_and_every_flow_has_a_bottleneck(case):
    paths, capacities = case
    rates = rates_of(paths, capacities)
    load = np.zeros(len(capacities))
    for path, rate in zip(paths, rates, strict=True):
        load[path] += rate
    assert (load <= np.array(capacities) * (1 + 1e-9)).all()
    for path, rate in zip(paths, rates, strict=True):
        full = [r for r in path if load[r] >= capacities[r] * (1 - 1e-9)]
        assert any(rate >= (1 - 1e-9) * max(rates[i] for i, other in enumerate(paths) if r in other) for r in full)


@given(flows(), st.randoms(use_true_random=False))
def test_the_order_of_flows_does_not_matter(case, random):
    paths, capacities = case
    order = list(range(len(paths)))
    random.shuffle(order)
    rates = rates_of(paths, capacities)
    assert rates_of([paths[i] for i in order], capacities) == pytest.approx(rates[order], rel=1e-9)


def test_textbook_case_of_three_links():
    """Bertsekas and Gallager's kind of example: a long flow and a crowd; 1/3, 1/3, 1/3, 2/3 and 1 of unit links."""
    paths = [[0, 1], [0], [0], [1], [2]]
    assert rates_of(paths, [1, 1, 1]) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3, 1])


def test_no_resources_no_limit_and_a_dead_link():
    assert rates_of([[], [0]], [0.0]).tolist() == [np.inf, 0.0]
    assert rates_of([], [1.0]).tolist() == []
