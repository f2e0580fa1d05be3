"""Distributions: moments against quadrature of their densities, samples against moments, and a name for legends."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from workbench.errors import UserError
from workbench.queueing import (
    Deterministic,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    Measured,
    TwoMoments,
    Uniform,
    mg1,
)

means = st.floats(0.01, 100)


@given(means, st.floats(0.05, 10))
def test_moments_equal_those_of_scipy(mean, scv):
    sigma = math.sqrt(math.log1p(scv))
    pairs = [
        (Exponential(mean_s=mean), stats.expon(scale=mean)),
        (Gamma(mean_s=mean, scv=scv), stats.gamma(1 / scv, scale=mean * scv)),
        (Lognormal(mean_s=mean, scv=scv), stats.lognorm(sigma, scale=mean * math.exp(-(sigma**2) / 2))),
        (Uniform(low_s=mean, high_s=3 * mean), stats.uniform(mean, 2 * mean)),
    ]
    for ours, theirs in pairs:
        for order in (1, 2, 3):
            assert ours.moment(order) == pytest.approx(theirs.moment(order), rel=1e-9)
        assert ours.mean_s == pytest.approx(theirs.mean(), rel=1e-12)
        assert ours.scv == pytest.approx(theirs.var() / theirs.mean() ** 2, rel=1e-9)


@given(means, st.floats(1, 20))
def test_balanced_hyperexponential_has_the_moments_it_promises(mean, scv):
    found = Hyperexponential(mean_s=mean, scv=scv)
    p = found.short_share
    assert 0.5 <= p < 1
    assert found.moment(1) == pytest.approx(mean)
    assert found.moment(2) / mean**2 - 1 == pytest.approx(scv, rel=1e-9)
    parts = [(p, mean / (2 * p)), (1 - p, mean / (2 * (1 - p)))]
    assert found.moment(3) == pytest.approx(sum(weight * 6 * m**3 for weight, m in parts))


@pytest.mark.parametrize(
    "law",
    [
        Deterministic(mean_s=0.3),
        Exponential(mean_s=0.3),
        Gamma(mean_s=0.3, scv=0.25),
        Gamma(mean_s=0.3, scv=4.0),
        Uniform(low_s=0.1, high_s=0.5),
        Lognormal(mean_s=0.3, scv=2.0),
        Hyperexponential(mean_s=0.3, scv=4.0),
        Measured(values_s=[0.1, 0.2, 0.6]),
    ],
    ids=lambda law: f"{law.kind} {law.scv:.2g}",
)
def test_samples_have_the_moments_that_are_told(law):
    drawn = law.draw(400_000, np.random.default_rng(8))
    assert drawn.min() >= 0
    for order in (1, 2):
        spread = (np.var(drawn**order) / drawn.size) ** 0.5
        assert abs((drawn**order).mean() - law.moment(order)) <= 5 * spread + 1e-12
    assert law.moment(2) / law.mean_s**2 - 1 == pytest.approx(law.scv, abs=1e-12)


def test_measured_values_are_kept_as_they_are():
    given_values = np.array([1.0, 2.0, 3.0])
    law = Measured(values_s=given_values)
    given_values[0] = 99.0
    assert law.mean_s == 2.0
    with pytest.raises(ValueError, match="read-only"):
        law.values_s[0] = 5.0
    assert set(law.draw(100, np.random.default_rng(1))) <= {1.0, 2.0, 3.0}
    assert mg1(0.2, law).service == "measured"


def test_two_moments_are_enough_for_the_mean_wait_and_for_nothing_else():
    named, bare = Gamma(mean_s=1.0, scv=3.0), TwoMoments(mean_s=1.0, scv=3.0)
    assert mg1(0.5, bare).mean_wait_s == pytest.approx(mg1(0.5, named).mean_wait_s)
    assert mg1(0.5, bare).wait_second_moment_s2 is None
    assert mg1(0.5, bare).wait_variance_s2 is None
    with pytest.raises(UserError, match="Only mean and SCV"):
        bare.moment(3)
