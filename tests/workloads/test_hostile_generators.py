"""Generators asked for what cannot be: one sentence, at once, whatever the numbers; nothing hangs or fills memory."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import UserError
from workbench.workloads import (
    Calendar,
    Counted,
    GammaRenewal,
    MarkovModulated,
    Modulated,
    PiecewisePoisson,
    Poisson,
    SharedPrefixes,
    Swing,
    fixed_lengths,
    generate,
    market,
    zipf_rates,
)

LENGTHS = fixed_lengths(64, 8)
ONE = Poisson(rate_per_s=1.0)
HOURS = (1,) * 24
FLICKERING = MarkovModulated(rates_per_s=(1, 2), stays_s=(1e-9, 1e-9))


def counted(**changed):
    return Counted(**{"counts": (3, 2), "window_s": 10, "span_s": 15, "gap_shape": 1.0, **changed})


@pytest.mark.parametrize("requests", [0, -1, 2.0, 2.5, True, "3", None, math.nan, [4], 10**9, 10**400])
def test_numbers_of_requests_that_are_none(requests):
    with pytest.raises(UserError, match="requests"):
        generate(ONE, LENGTHS, requests=requests)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True, math.nan, [1, 2], np.float64(3)])
def test_seeds_that_are_none(seed):
    words = r"field 'seed': is .*; give a whole number of 0 or more, or a SeedSequence\."
    with pytest.raises(UserError, match=words):
        generate(ONE, LENGTHS, requests=3, seed=seed)
    with pytest.raises(UserError, match=words):
        market({"a": 1.0}, LENGTHS, duration_s=3, seed=seed)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: Calendar(per_day=(0,), hour_weights=HOURS), "per_day must not all be zero; raise one"),
        (lambda: Calendar(per_day=(), hour_weights=HOURS), "per_day"),
        (lambda: Calendar(per_day=(5,), hour_weights=(0,) * 24), "hour_weights must not all be zero; raise one"),
        (lambda: Calendar(per_day=(5,), hour_weights=(1,) * 23), "hour_weights"),
        (lambda: Calendar(per_day=(-5,), hour_weights=HOURS), "per_day"),
        (lambda: counted(counts=()), "counts"),
        (lambda: counted(counts=(3, -1)), "counts"),
        (lambda: counted(counts=(3, 1.5)), "counts"),
        (lambda: counted(counts=(0, 2)), "the first and last window need an arrival"),
        (lambda: counted(span_s=25), "span_s must end in the last window"),
        (lambda: counted(counts=(1,), span_s=5), "one arrival cannot be both"),
        (lambda: counted(counts=(10**9, 1)), "there are 1,000,000,001 arrivals, more than 50,000,000; count fewer"),
        (lambda: generate(counted(), LENGTHS, requests=6), "is 6 where the process has 5 arrivals in all"),
        (lambda: generate(5, LENGTHS, requests=1), "field 'arrivals': is 5; give an arrival process"),
        (lambda: generate(ONE, "short", requests=1), "field 'lengths': is 'short'; give a length model"),
        (lambda: generate(ONE, LENGTHS, requests=1, prefixes=0.5), "field 'prefixes': is 0.5"),
        (lambda: generate(ONE, LENGTHS, requests=1, name=5), "field 'name': is 5; give a text"),
        (lambda: generate(ONE, LENGTHS, duration_s=1e300), "1e[+]300 arrivals are expected, more than 50,000,000"),
        (lambda: generate(FLICKERING, LENGTHS, duration_s=9), "the rate changes 9,000,000,000 times in the span"),
        (lambda: zipf_rates(10**7, 1.0), "models"),
        (lambda: market({3: 1.0}, LENGTHS, duration_s=1), "names a model 3; give each model's name as a text"),
        (lambda: market({str(k): 1e6 for k in range(99)}, LENGTHS, duration_s=49), "4,851,000,000 arrivals"),
        (lambda: Swing(cv=1, memory_s=5e-324), "Swing.memory_s': is 5e-324"),
        (lambda: SharedPrefixes(block_tokens=1, hit_share=0.5, memory=10**9), "memory"),
        (
            lambda: generate(
                ONE, fixed_lengths(10**8, 1), requests=2, prefixes=SharedPrefixes(block_tokens=1, hit_share=0)
            ),
            "makes 200,000,000 hashes, more than 100,000,000; let a block hold more tokens",
        ),
    ],
)
def test_one_sentence(ask, words):
    with pytest.raises(UserError, match=words) as caught:
        ask()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@given(st.floats(1e-3, 10.0), st.floats(0.1, 2000.0), st.floats(0.5, 20.0))
def test_a_script_of_equal_pieces_is_one_piece(length_s, duration_s, rate):
    """Thousands of pieces add up to a rounding error less than the span, and must not lose or gain an arrival by it."""
    pieces = PiecewisePoisson(lengths_s=(length_s,), rates_per_s=(rate,), gap_shape=0.5)
    whole = PiecewisePoisson(lengths_s=(1e6,), rates_per_s=(rate,), gap_shape=0.5)
    found, expected = (process.times(duration_s, np.random.default_rng(1)) for process in (pieces, whole))
    assert abs(found.size - expected.size) <= 1  # the last one may lie within a rounding error of the end
    both = min(found.size, expected.size)
    assert found[:both] == pytest.approx(expected[:both], rel=1e-9, abs=1e-9)


odd = st.sampled_from([0, -1, 0.5, 1e-300, 1e-9, 1e9, 1e15, 1e300, math.inf, math.nan, None, "a", True, 10**400])
usual = st.one_of(st.floats(1e-3, 1e3), st.integers(1, 100))
number = st.one_of(usual, usual, usual, odd)
numbers = st.lists(number, max_size=3)


def asked(kind, **fields):
    return st.tuples(st.just(kind), st.fixed_dictionaries(fields))


pauses = st.fixed_dictionaries(dict.fromkeys(("on_mean_s", "on_cv", "off_least_s", "off_mean_s", "off_cv"), number))
processes = st.one_of(
    asked(Poisson, rate_per_s=number, at_most_nominal=st.sampled_from([True, False, "x"])),
    asked(GammaRenewal, rate_per_s=number, shape=number),
    asked(MarkovModulated, rates_per_s=numbers, stays_s=numbers, gap_shape=number),
    asked(PiecewisePoisson, rates_per_s=numbers, lengths_s=numbers, gap_shape=number),
    asked(Calendar, per_day=numbers, hour_weights=st.lists(number, min_size=24, max_size=24), gap_shape=number),
    asked(
        Counted, counts=st.lists(st.one_of(st.integers(0, 9), odd)), window_s=number, span_s=number, gap_shape=number
    ),
    asked(
        Modulated,
        rate_per_s=number,
        gap_shape=number,
        swings=st.lists(st.fixed_dictionaries({"cv": number, "memory_s": number}), max_size=2),
        pauses=st.one_of(st.none(), pauses),
    ),
)


@settings(deadline=5000)
@given(processes, number, st.booleans(), st.one_of(st.just(0), odd))
def test_any_process_draws_sorted_times_or_says_why_not(process, amount, in_requests, seed):
    kind, fields = process
    asked_for = {"requests" if in_requests else "duration_s": amount}
    try:
        requests = generate(kind(**fields), LENGTHS, seed=seed, **asked_for).requests
    except UserError as error:
        text = str(error)
        assert text.endswith("."), text
        assert "\n" not in text
        assert len(text) < 400
    else:
        times_s = requests["arrival_s"].to_numpy()
        assert times_s[0] == 0
        assert (np.diff(times_s) >= 0).all()
        assert np.isfinite(times_s).all()
        assert times_s.size == amount if in_requests else times_s[-1] < amount
