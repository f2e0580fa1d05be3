"""Every kernel against its slow twin, and against other formulas where floats run out of room."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from workbench.queueing.kernels.at_once import count_probabilities, count_probabilities_slow
from workbench.queueing.kernels.constant_service import (
    md1_wait_cdf,
    md1_wait_cdf_slow,
    md1_waiting_levels,
    mdc_mean_queue_by_roots,
    mdc_mean_queue_by_series,
)
from workbench.queueing.kernels.erlang import erlang_b, erlang_b_slow, erlang_c
from workbench.queueing.kernels.gamma_arrivals import gimc_slow, idle_root, wait_probability
from workbench.queueing.kernels.heaps import pop, push, replace_smallest
from workbench.queueing.kernels.levels import level_probabilities, level_probabilities_slow
from workbench.queueing.kernels.poisson import poisson_excess, poisson_excess_slow, poisson_probability
from workbench.queueing.kernels.warm_up import marginal_errors, marginal_errors_slow

loads = st.floats(0.02, 0.98)


@given(st.integers(1, 60), st.integers(1, 120))
def test_erlang_b_equals_its_definition(servers, halves):
    exact = erlang_b_slow(Fraction(halves, 2), servers)
    assert erlang_b(halves / 2, servers) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize(("servers", "load"), [(10_000, 0.9999), (10_000, 0.995), (1000, 0.5), (100_000, 0.9999)])
def test_erlang_is_stable_for_many_servers(servers, load):
    """B = P(N = c) / P(N <= c) for N ~ Poisson(a), by scipy's gamma functions."""
    offered = servers * load
    blocked = np.exp(stats.poisson.logpmf(servers, offered)) / special.pdtr(servers, offered)
    assert erlang_b(offered, servers) == pytest.approx(blocked, rel=1e-8)
    assert erlang_c(offered, servers) == pytest.approx(blocked / (1 - load * (1 - blocked)), rel=1e-8)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 60), st.booleans())
def test_levels_equal_their_definition(leave, arrivals, endless):
    leave = sorted(leave)
    if endless and arrivals >= leave[-1]:
        leave.append(arrivals + 1)
    found = np.empty(len(leave) + 1)
    level_probabilities(float(arrivals), np.array(leave, dtype=float), endless, found)
    exact = level_probabilities_slow(Fraction(arrivals), [Fraction(rate) for rate in leave], endless)
    assert found.tolist() == pytest.approx([float(p) for p in exact], rel=1e-12)


@given(st.floats(0.001, 5000), st.floats(-6, 6))
def test_poisson_probabilities_equal_those_of_scipy(mean, deviations):
    count = max(0, round(mean + deviations * mean**0.5))
    assert poisson_probability(count, mean) == pytest.approx(stats.poisson.pmf(count, mean), rel=2e-10)


def test_poisson_probabilities_of_a_huge_mean_keep_their_digits():
    """Stirling's formula at n = x: 1 / sqrt(2πn) times exp(-1/12n)."""
    n = 16_000_000
    assert poisson_probability(n, float(n)) == pytest.approx(np.exp(-1 / (12 * n)) / np.sqrt(2 * np.pi * n), rel=1e-13)
    assert (poisson_probability(0, 0.0), poisson_probability(3, 0.0)) == (1.0, 0.0)


@given(st.integers(1, 300), loads)
def test_poisson_excess_equals_its_definition(level, load):
    mean = level * load
    assert poisson_excess(level, mean) == pytest.approx(poisson_excess_slow(level, mean), rel=1e-9, abs=1e-290)


@given(st.integers(1, 64), st.floats(0.3, 0.97))
def test_constant_service_by_roots_equals_that_by_the_series(servers, load):
    """Two formulas of Crommelin; the roots lose digits where hardly anyone waits."""
    series = mdc_mean_queue_by_series(servers * load, servers)
    assert mdc_mean_queue_by_roots(servers * load, servers) == pytest.approx(series, rel=1e-9, abs=1e-11 * servers)


@pytest.mark.parametrize("load", [0.99, 0.9999])
def test_constant_service_at_heavy_load_equals_half_of_the_exponential_one(load):
    """M/D/c over M/M/c tends to 1/2 as the load tends to 1; exactly 1/2 for one server."""
    for servers, within in ((1, 1e-9), (10, 0.02), (1000, 0.2)):
        ratio = mdc_mean_queue_by_roots(servers * load, servers) / (
            erlang_c(servers * load, servers) * load / (1 - load)
        )
        assert 0.5 * (1 - 1e-9) <= ratio <= 0.5 * (1 + within * (1 - load) / 0.01 + 1e-9)


@given(st.floats(0.05, 0.95), st.floats(0, 6))
def test_md1_distribution_equals_erlangs(load, wait):
    levels = np.empty(8)
    md1_waiting_levels(load, levels)
    assert md1_wait_cdf(wait, load, levels) == pytest.approx(md1_wait_cdf_slow(wait, load), rel=1e-9)


def test_md1_tail_falls_as_the_theory_says():
    """P(wait > t) ~ C exp(-ηt), η the root of λ(e^η - 1) = η, where Erlang's alternating sum has lost all digits."""
    load = 0.8
    levels = np.empty(60)
    md1_waiting_levels(load, levels)
    tails = [1 - md1_wait_cdf(t, load, levels) for t in (20.0, 30.0)]
    decay = np.log(tails[0] / tails[1]) / 10
    assert load * np.expm1(decay) == pytest.approx(decay, rel=1e-4)


@given(st.integers(1, 12), st.floats(0.02, 0.95), st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0, 9.0]))
def test_gamma_arrivals_equal_takacs_formula(servers, load, scv):
    zero = servers * idle_root(load * servers, scv, float(servers))
    if abs(zero - round(zero)) < 1e-3:
        return  # there the formula of the books divides 0 by 0
    sigma, waits = gimc_slow(load * servers, scv, 1.0, servers)
    assert 1 - idle_root(load * servers, scv, float(servers)) == pytest.approx(sigma, rel=1e-9)
    assert wait_probability(load * servers, scv, 1.0, servers) == pytest.approx(waits, rel=1e-7)


@pytest.mark.parametrize("servers", [1, 4, 10, 20, 1000])
@pytest.mark.parametrize("load", [0.5, 0.9, 0.9999])
def test_gamma_arrivals_of_scv_1_are_poisson(servers, load):
    """Also where c(1-ρ) is a whole number, at which the formula of the books divides 0 by 0."""
    found = wait_probability(load * servers, 1.0, 1.0, servers)
    assert found == pytest.approx(erlang_c(load * servers, servers), rel=1e-9)


def test_clockwork_arrivals_are_the_limit_of_small_scv():
    found = [wait_probability(3.2, scv, 1.0, 4) for scv in (0.0, 1e-9)]
    assert found[0] == pytest.approx(found[1], rel=1e-7)
    assert idle_root(0.8, 0.0, 1.0) == pytest.approx(
        1 + special.lambertw(-np.exp(-1 / 0.8) / 0.8).real * 0.8, rel=1e-12
    )


@given(st.lists(st.integers(0, 16), min_size=1, max_size=14))
def test_counts_at_once_equal_the_product_of_polynomials(sixteenths):
    found = np.empty(len(sixteenths) + 1)
    count_probabilities(np.array(sixteenths) / 16, found)
    exact = count_probabilities_slow([Fraction(k, 16) for k in sixteenths])
    assert found.tolist() == pytest.approx([float(p) for p in exact], rel=1e-12)


def test_counts_at_once_of_many_like_events_are_binomial():
    found = np.empty(5001)
    count_probabilities(np.full(5000, 0.01), found)
    assert found.sum() == pytest.approx(1, rel=1e-12)
    near = np.arange(20, 90)
    assert found[near].tolist() == pytest.approx(stats.binom.pmf(near, 5000, 0.01).tolist(), rel=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.floats(-1e6, 1e6))
def test_a_heap_gives_up_its_smallest(values, new):
    heap = np.array(sorted(values))
    replace_smallest(heap, new)
    assert sorted(heap) == sorted([*sorted(values)[1:], new])
    assert heap[0] == heap.min()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_pushed_entries_pop_in_order(values):
    key, item = np.empty(len(values)), np.empty(len(values), dtype=np.int64)
    for size, value in enumerate(values):
        push(key, item, size, value, size)
    popped = []
    for size in range(len(values), 0, -1):
        popped.append((key[0], values[item[0]]))
        pop(key, item, size)
    assert popped == [(value, value) for value in sorted(values)]


@given(st.lists(st.integers(-50, 50), min_size=4, max_size=80))
@settings(max_examples=50)
def test_marginal_errors_equal_their_definition(series):
    found = np.empty(len(series) // 2)
    marginal_errors(np.array(series, dtype=float), found)
    slow = marginal_errors_slow([Fraction(value) for value in series], found.size)
    assert found.tolist() == pytest.approx([float(value) for value in slow], rel=1e-9, abs=1e-9)
