"""Intervals, batch means, warm-up, replications, coverage: against textbook numbers, and on processes known exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.queueing import Exponential, draw_customers, first_come_path, mm1
from workbench.queueing.statistics import (
    Interval,
    batch_means,
    coverage,
    drop_share,
    ends_over_runs,
    mser,
    replicate,
    replication_seeds,
    student_interval,
)


def test_student_interval_of_a_textbook_sample():
    """t(0.975, 9) = 2.262, t(0.95, 9) = 1.833 (any table): ten values of mean 5.5 and standard deviation 3.0277."""
    values = range(1, 11)
    found = student_interval(list(values))
    assert found.mean == 5.5
    assert found.half_width == pytest.approx(2.262 * 3.0277 / 10**0.5, rel=2e-4)
    assert student_interval(list(values), 0.9).half_width == pytest.approx(1.833 * 3.0277 / 10**0.5, rel=4e-4)
    assert found.holds(5.5)
    assert not found.holds(found.high + 1e-9)
    assert found.relative == found.half_width / 5.5


def test_ends_over_runs_where_there_is_an_interval_and_where_there_is_none():
    """Mean 3, standard deviation sqrt(2.5) of 1 to 5; t(0.975, 4) = 2.776 (any table of Student's t)."""
    half = 2.776 * 2.5**0.5 / 5**0.5
    assert ends_over_runs([1, 2, 3, 4, 5]) == pytest.approx((3 - half, 3 + half), abs=1e-3)
    assert ends_over_runs([2, 2]) == (2, 2)
    for none in ([], [1.0], [1.0, float("nan")], [1.0, 2.0, float("inf")]):
        assert ends_over_runs(none) is None


@given(st.integers(2, 40), st.integers(0, 1000))
def test_replications_are_children_of_one_seed_however_many(count, seed):
    few, many = replication_seeds(seed, count), replication_seeds(seed, count + 3)
    draw = lambda child: np.random.default_rng(child).random(4).tolist()  # noqa: E731
    assert [draw(child) for child in few] == [draw(child) for child in many][:count]
    assert len({tuple(draw(child)) for child in many}) == count + 3


def test_replications_keep_every_quantity_by_name():
    found = replicate(lambda seed: {"a": 1.0, "b": np.random.default_rng(seed).random()}, 5, seed=3)
    assert found.values["a"] == (1.0,) * 5
    assert found.interval("b").count == 5
    names = iter(("x", "y"))
    with pytest.raises(WorkbenchError, match="Replication 2"):
        replicate(lambda seed: {next(names): 1.0}, 2, seed=3)


def autoregressive(rho, count, rng):
    """A stationary series of mean 0, variance 1 and correlation rho^k."""
    from scipy.signal import lfilter

    noise = rng.standard_normal(count) * (1 - rho**2) ** 0.5
    noise[0] /= (1 - rho**2) ** 0.5
    return lfilter([1.0], [1.0, -rho], noise)


def test_batch_means_tell_when_batches_are_too_short():
    """Batches of 20 at correlation 0.95 depend on each other, batches of 2000 do not."""
    rng = np.random.default_rng(4)
    series = autoregressive(0.95, 60_000, rng)
    assert not batch_means(series[:600], 30).independent
    long = batch_means(series, 30)
    assert long.independent
    assert long.batch == 2000
    # variance of a long mean: (1 + rho) / (1 - rho) / n = 39 / n; chi-square of 29 degrees of freedom
    spread = long.interval.half_width / 2.045
    assert 0.6 < spread / (39 / 60_000) ** 0.5 < 1.5


def test_batch_means_of_one_run_keep_their_promise_and_naive_intervals_do_not():
    """Waits of M/M/1 at load 0.5, 400 runs of 30 batches of 1000; the raw waits taken as independent deceive."""
    exact, batched, naive = mm1(0.5, 1.0).mean_wait_s, [], []
    for seed in replication_seeds(21, 400):
        waits = first_come_path(draw_customers(Exponential(mean_s=2.0), Exponential(mean_s=1.0), 31_000, seed)).wait_s
        batched.append(batch_means(waits[1000:], 30).interval)
        naive.append(student_interval(waits[1000:]))
    promised = coverage(batched, exact)
    assert promised.kept, promised
    deceived = coverage(naive, exact)
    assert deceived.share < 0.7
    assert not deceived.kept


def test_coverage_counts_and_its_band_is_the_binomial_one():
    """Of 400 intervals at 95 %, 370 to 390 hold the value but for one experiment in a hundred (scipy's binomial)."""
    inside, above = (Interval(mean=m, half_width=1.0, confidence=0.95, count=9) for m in (0.5, 3.0))
    found = coverage([inside] * 380 + [above] * 20, 0.0)
    assert (found.held, found.too_high, found.too_low) == (380, 20, 0)
    assert found.kept
    from scipy.stats import binom

    low, high = (round(400 * edge) for edge in found.band)
    assert binom.cdf(low - 1, 400, 0.95) < 0.005 <= binom.cdf(low, 400, 0.95)
    assert binom.cdf(high - 1, 400, 0.95) < 0.995 <= binom.cdf(high, 400, 0.95)
    assert not coverage([inside] * 360 + [above] * 40, 0.0).kept
    assert not coverage([inside] * 400, 0.0).kept


def test_mser_cuts_the_start_of_a_queue_that_began_far_from_its_mean():
    """A queue that starts with 200 services of work: MSER-5 drops that and lands near the exact mean."""
    gaps = np.random.default_rng(9)
    customers = draw_customers(Exponential(mean_s=2.0), Exponential(mean_s=1.0), 20_000, seed=gaps.integers(100).item())
    customers.service_s[0] += 200.0
    waits = first_come_path(customers).wait_s
    rule = mser(waits)
    assert rule.settled
    assert 100 < rule.dropped < 2000
    assert rule.dropped % 5 == 0
    assert rule.dropped + rule.kept == 20_000
    exact = mm1(0.5, 1.0).mean_wait_s
    assert abs(rule.cut(waits).mean() / exact - 1) < 0.1
    assert abs(waits.mean() / exact - 1) > 0.2


def test_mser_says_when_a_run_is_too_short_to_settle():
    assert not mser(np.arange(100.0)).settled
    assert mser(np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 40)).dropped == 0
    assert drop_share(99, 0.1).dropped == 9
