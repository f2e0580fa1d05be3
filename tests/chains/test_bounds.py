"""Theorem 4 and exact small systems: golden values, M/M/c, and bounds that hold without any tolerance."""

from fractions import Fraction

import numpy as np
import pytest

from workbench.chains import best_dispatch, bounds, break_even_rate, exact, in_fractions, reference, threshold_response
from workbench.errors import InputError, UserError
from workbench.queueing import Unstable, fastest_free_bounds, mmc

TABLE = [
    # rates, slots, λ, exact T, P(wait), lower, upper: notes on server chains §2.9
    ((1, 0.5), (1, 1), 0.3, 1.250000, None, 1.136364, 1.785714),
    ((1, 0.5), (1, 1), 0.75, 1.739130, None, 1.600000, 2.000000),
    ((1, 0.5), (1, 1), 1.2, 3.695652, None, 3.571429, 3.846154),
    ((1, 0.5), (2, 3), 1.5, 1.324803, 0.064508, 1.169649, 1.803244),
    ((1, 0.5), (2, 3), 2.5, 1.784015, 0.387524, 1.640530, 2.018560),
    ((0.1, 0.06, 0.05), (4, 3, 3), 0.4, 12.451045, 0.046269, 11.328148, 16.415317),
    ((1, 1), (2, 3), 3, 1.118076, 0.236152, 1.118076, 1.118076),
]


@pytest.mark.parametrize(("rates", "slots", "arrivals", "response", "waits", "lower", "upper"), TABLE)
def test_table_of_exact_cases(rates, slots, arrivals, response, waits, lower, upper):
    found, edges = exact(rates, slots, arrivals), bounds(rates, slots, arrivals)
    assert found.mean_response_s == pytest.approx(response, abs=1e-6)
    assert edges.response_lower_s == pytest.approx(lower, abs=1e-6)
    assert edges.response_upper_s == pytest.approx(upper, abs=1e-6)
    if waits is not None:
        assert found.wait_probability == pytest.approx(waits, abs=1e-6)
    twin = in_fractions([str(rate) for rate in rates], slots, str(arrivals))
    assert float(twin.exact) / arrivals == pytest.approx(response, abs=1e-6)


def test_two_single_slots_by_hand():
    """K = 2, one slot each: the balance solved on paper (notes §2.9)."""
    for fast, slow, arrivals in ((1.0, 0.5, 0.3), (2.0, 0.1, 1.9), (1.0, 1.0, 0.5)):
        load = arrivals / (fast + slow)
        p01 = fast / (arrivals + slow)
        p10 = (fast + slow) / arrivals - p01
        p00 = (fast * p10 + slow * p01) / arrivals
        norm = p00 + p10 + p01 + 1 / (1 - load)
        inside = (p10 + p01 + 2 / (1 - load) + load / (1 - load) ** 2) / norm
        assert exact([fast, slow], [1, 1], arrivals).mean_in_system == pytest.approx(inside, rel=1e-12)


@pytest.mark.parametrize("arrivals", [0.1, 3.0, 4.9])
def test_equal_rates_are_erlangs(arrivals):
    """Both bounds and the exact chain collapse to M/M/c."""
    erlang = mmc(arrivals, 1.0, 5).mean_response_s
    edges = bounds([1.0, 1.0], [2, 3], arrivals)
    assert edges.response_lower_s == pytest.approx(erlang, rel=1e-12)
    assert edges.response_upper_s == pytest.approx(erlang, rel=1e-12)
    assert exact([1.0, 1.0], [2, 3], arrivals).mean_response_s == pytest.approx(erlang, rel=1e-10)


def small_system(rng):
    """Rates, slots and λ as short decimals, so that fractions stay short; at most 24 states."""
    while True:
        count = int(rng.integers(1, 4))
        rates = [Fraction(int(rng.integers(1, 100)), 100) for _ in range(count)]
        slots = rng.integers(1, 4, count).tolist()
        if np.prod(np.array(slots) + 1) <= 24:
            break
    capacity = sum(rate * slot for rate, slot in zip(rates, slots, strict=True))
    return rates, slots, capacity * Fraction(int(rng.integers(2, 98)), 100)


def test_bounds_hold_at_zero_tolerance_on_a_thousand_small_systems():
    """Theorem 4, Lemma 3: LB <= exact <= UB with no tolerance at all, in exact fractions."""
    rng = np.random.default_rng(4)
    apart = 0
    for _ in range(1000):
        rates, slots, arrivals = small_system(rng)
        found = in_fractions(rates, slots, arrivals)
        assert found.lower <= found.exact <= found.upper
        apart += found.lower < found.exact < found.upper
        floats = list(map(float, rates)), slots, float(arrivals)
        edges = bounds(*floats)
        assert (edges.inside_lower, edges.inside_upper) == pytest.approx(
            (float(found.lower), float(found.upper)), rel=1e-11
        )
        assert exact(*floats).mean_in_system == pytest.approx(float(found.exact), rel=1e-9)
    assert apart > 500


def test_bounds_are_those_of_unequal_servers():
    """The waiting-line room computes them another way (level probabilities summed by `fsum`)."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        rates, slots = rng.uniform(0.05, 2, 6), rng.integers(1, 9, 6)
        arrivals = float(rng.uniform(0.05, 0.99) * (rates @ slots))
        ours, theirs = bounds(rates, slots, arrivals), fastest_free_bounds(arrivals, rates, slots)
        assert ours.response_lower_s == pytest.approx(theirs.response_lower_s, rel=1e-11)
        assert ours.response_upper_s == pytest.approx(theirs.response_upper_s, rel=1e-11)


def test_bounds_of_a_hundred_thousand_slots_neither_overflow_nor_cancel():
    """All slots alike: Erlang C of 100,000 servers at load 0.999, which the closed form gives."""
    edges = bounds([1.0], [100_000], 99_900.0)
    erlang = mmc(99_900.0, 1.0, 100_000).mean_response_s
    assert edges.response_lower_s == pytest.approx(erlang, rel=1e-9)
    assert edges.response_upper_s == pytest.approx(erlang, rel=1e-9)


@pytest.mark.parametrize(("arrivals", "slow"), [(0.3, 0.3450), (0.6, 0.1717), (0.8, 0.0514)])
def test_break_even_of_the_slow_slot(arrivals, slow):
    """Notes §2.9: below it, the fast slot alone (M/M/1) does better than join-the-fastest-free-chain."""
    found = break_even_rate(arrivals)
    assert found == pytest.approx(slow, abs=5e-5)
    alone = 1 / (1 - arrivals)
    assert exact([1, found * 0.9], [1, 1], arrivals).mean_response_s > alone
    assert exact([1, found * 1.1], [1, 1], arrivals).mean_response_s < alone


@pytest.mark.parametrize("arrivals", [1e-6, 0.3, 0.999, 1 - 1e-6, 1 - 1e-9])
def test_the_break_even_in_fractions_up_to_full_load(arrivals):
    """A millionth to either side of it the exact mean of both slots is above, or below, that of M/M/1."""
    found, alone = Fraction(break_even_rate(arrivals)), Fraction(arrivals) / (1 - Fraction(arrivals))
    below, above = (in_fractions([1, found * Fraction(x)], [1, 1], arrivals).exact for x in ("0.999999", "1.000001"))
    assert below > alone > above
    assert break_even_rate(5 * arrivals, 5.0) == pytest.approx(5 * float(found), rel=1e-6)


def test_a_slow_free_slot_can_hurt():
    """λ = 0.3, rates 1 and 0.1: 2.367 s with both, 1.429 s on the fast one alone."""
    assert exact([1, 0.1], [1, 1], 0.3).mean_response_s == pytest.approx(2.367, abs=5e-4)
    assert mmc(0.3, 1.0, 1).mean_response_s == pytest.approx(1.429, abs=5e-4)


def threshold_by_hand(slow, arrivals, threshold, longest=400):
    """Mean response when the slow slot takes a head once the line (head included) is `threshold` long, by hand."""
    states = [(f, s, q) for f in (0, 1) for s in (0, 1) for q in range(longest + 1)]
    place = {state: index for index, state in enumerate(states)}

    def settle(f, s, q):
        while q and (not f or (not s and q >= threshold)):
            f, s, q = (1, s, q - 1) if not f else (f, 1, q - 1)
        return f, s, q

    flow = np.zeros((len(states), len(states)))
    for f, s, q in states:
        moves = [(arrivals, settle(f, s, min(q + 1, longest)))]
        moves += [(1.0, settle(0, s, q))] if f else []
        moves += [(slow, settle(f, 0, q))] if s else []
        for rate, after in moves:
            flow[place[after], place[f, s, q]] += rate
            flow[place[f, s, q], place[f, s, q]] -= rate
    flow[-1] = 1.0
    weight = np.linalg.solve(flow, np.eye(len(states))[-1])
    return sum(sum(state) * p for state, p in zip(states, weight, strict=True)) / arrivals


@pytest.mark.parametrize(("slow", "arrivals"), [(0.1, 0.3), (0.1, 0.6), (0.1, 0.8), (0.4, 0.3)])
def test_the_best_dispatch_of_two_slots_is_the_best_threshold(slow, arrivals):
    """Lin and Kumar (1984): some threshold is optimal; every one up to 12 solved by hand, value iteration beside."""
    tried = {threshold: threshold_by_hand(slow, arrivals, threshold, 120) for threshold in range(1, 13)}
    for threshold, response in tried.items():
        assert threshold_response(arrivals, slow, threshold) == pytest.approx(response, rel=1e-6)
        # Rates a minute are 60 times as many as rates a second: the same system, its time in minutes.
        minutes = threshold_response(60 * arrivals, 60 * slow, threshold, fast_rate_per_s=60.0)
        assert minutes * 60 == pytest.approx(response, rel=1e-6)
    best = best_dispatch([1.0, slow], [1, 1], arrivals)
    assert best.mean_response_s == pytest.approx(min(tried.values()), abs=1e-5)
    row = best.starts.filter(best.starts["busy"] == "1 0").row(0, named=True)
    assert row["from_waiting"] == min(tried, key=tried.get)
    assert best.mean_response_s <= exact([1.0, slow], [1, 1], arrivals).mean_response_s + 1e-6
    assert tried[1] == pytest.approx(exact([1.0, slow], [1, 1], arrivals).mean_response_s, rel=1e-6)


def test_a_longer_line_lets_the_best_dispatch_of_a_busier_slot_be_found():
    """One slot has no choice: M/M/1 at load 0.95 stays 1 / (1 - 0.95) = 20 s, its line beyond 200 too often."""
    with pytest.raises(InputError, match="longest"):
        best_dispatch([1.0], [1], 0.95)
    assert best_dispatch([1.0], [1], 0.95, longest=600).mean_response_s == pytest.approx(20.0, rel=1e-4)


def test_a_theorem_off_its_assumptions_is_called_a_reference():
    made = reference([1.0, 0.5], [1, 1], 0.75)
    assert made.label == "Poisson/exp reference"
    assert (round(made.response_lower_s, 6), round(made.response_upper_s, 6)) == (1.6, 2.0)


def test_systems_that_cannot_be_answered():
    with pytest.raises(Unstable, match="no steady state"):
        bounds([1.0], [1], 1.0)
    with pytest.raises(InputError, match="2 numbers for 1 rates"):
        bounds([1.0], [1, 1], 0.5)
    with pytest.raises(InputError, match="whole numbers of slots"):
        bounds([1.0], [1.5], 0.5)
    with pytest.raises(InputError, match="rates_per_s"):
        bounds([0.0], [1], 0.5)
    with pytest.raises(InputError, match="nobody ever arrives"):
        bounds([1.0], [1], 0.0)
    with pytest.raises(UserError, match="combinations of busy slots are too many"):
        best_dispatch([1.0] * 6, [9] * 6, 1.0)
    with pytest.raises(InputError, match="the line is longer too often"):
        best_dispatch([1.0], [1], 0.99)
    with pytest.raises(InputError, match="tolerance"):
        best_dispatch([1.0], [1], 0.5, tolerance=0)
    with pytest.raises(UserError, match="too many for fractions"):
        in_fractions([1] * 20, [10] * 20, "0.5")
    with pytest.raises(Unstable, match="no steady state"):
        in_fractions([1, 2], [1, 1], 3)
    with pytest.raises(InputError, match="at least one number"):
        in_fractions([], [], 1)
    for rates in (1, "1", None, ["a"], [[1.0]], [float("nan")], ["1/0"], ["1e400"]):
        with pytest.raises(InputError, match="rates_per_s"):
            in_fractions(rates, [1], "0.5")
    for arrivals in ("a", None, [1], float("inf"), float("nan"), "1e400", -1):
        with pytest.raises(InputError, match="arrival_rate_per_s"):
            in_fractions([1], [1], arrivals)
    for function in (bounds, in_fractions):
        with pytest.raises(InputError, match="rates_per_s"):
            function([1e-320], [1], 1e-321)
