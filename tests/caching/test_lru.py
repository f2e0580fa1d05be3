"""An LRU cache: exact distributions against matrix exponentials and closed forms, replays against each other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from workbench.caching.kernels.lru import lru_replay_slow
from workbench.caching.model import LruCache, lru_evictions
from workbench.caching.simulated import simulate_lru
from workbench.errors import InputError

MINUTE = 1 / 60


@pytest.mark.parametrize(
    ("capacity", "rate_per_s", "stay", "idle"),
    [(3, MINUTE, 0.42, 0.52), (1, MINUTE, None, 0.95), (3, 3 * MINUTE, 0.95, None)],
)
def test_the_readings_of_figure_2(capacity, rate_per_s, stay, idle):
    """Values of the dossier (trap 14), simulated there with 12 models."""
    found = LruCache(models=12, capacity=capacity, rate_per_s=rate_per_s).gone([15.0])
    for ours, theirs in zip(found, (stay, idle), strict=True):
        assert theirs is None or float(ours[0]) == pytest.approx(theirs, abs=0.005)


def generator(models, capacity, rate):
    """Places of a model from load to eviction as a Markov chain in continuous time."""
    q = np.zeros((capacity, capacity))
    for at in range(capacity):
        q[at, at] -= rate * (models - 1 - at)
        if at + 1 < capacity:
            q[at, at + 1] += rate * (models - 1 - at)
        q[at, at] -= rate
        q[at, 0] += rate
    return q


@given(st.integers(2, 20), st.data(), st.floats(0.01, 5), st.floats(0, 200))
def test_stay_is_the_phase_type_of_the_chain(models, data, rate, time_s):
    capacity = data.draw(st.integers(1, models - 1))
    cache = LruCache(models=models, capacity=capacity, rate_per_s=rate)
    left = expm(generator(models, capacity, rate) * time_s)[0].sum()
    assert float(cache.gone([time_s])[0][0]) == pytest.approx(1 - left, abs=1e-9)
    mean = np.linalg.solve(-generator(models, capacity, rate), np.ones(capacity))[0]
    assert cache.mean_stay_s == pytest.approx(mean, rel=1e-9)


def test_idle_is_a_sum_of_exponentials():
    """Rates a > b > c of the stages: P(sum > t) = Σ_i e^{-r_i t} Π_{j≠i} r_j / (r_j - r_i)."""
    rates = [12 * MINUTE, 11 * MINUTE, 10 * MINUTE]
    times = np.array([0.0, 3.0, 15.0, 60.0])
    left = sum(np.exp(-r * times) * math.prod(other / (other - r) for other in rates if other != r) for r in rates)
    cache = LruCache(models=12, capacity=3, rate_per_s=MINUTE)
    assert cache.gone(times)[1] == pytest.approx(1 - left, abs=1e-12)
    assert cache.mean_idle_s == pytest.approx(sum(1 / r for r in rates))


def test_a_cache_of_one_forgets_at_the_next_other_request():
    """Stay: until the first request to one of the 11 others, exponential."""
    cache = LruCache(models=12, capacity=1, rate_per_s=MINUTE)
    times = np.linspace(0, 30, 7)
    assert cache.gone(times)[0] == pytest.approx(1 - np.exp(-11 * MINUTE * times), abs=1e-12)
    assert cache.miss_share == pytest.approx(11 / 12)


def test_a_path_follows_the_distribution():
    """200,000 requests: shares within four standard errors of independent evictions, doubled for their dependence."""
    rng = np.random.default_rng(5)
    times, model = np.cumsum(rng.exponential(5.0, 200_000)), rng.integers(12, size=200_000)
    found = lru_evictions(times, model, 3)
    cache = LruCache(models=12, capacity=3, rate_per_s=MINUTE)
    assert len(found.stay_s) / 200_000 == pytest.approx(cache.miss_share, abs=0.005)
    stay, idle = cache.gone([5.0, 15.0, 40.0])
    for at, one, other in zip((5.0, 15.0, 40.0), stay, idle, strict=True):
        error = 8 * 0.5 / math.sqrt(len(found.stay_s))
        assert float((found.stay_s <= at).mean()) == pytest.approx(one, abs=error)
        assert float((found.idle_s <= at).mean()) == pytest.approx(other, abs=error)
    assert found.stay_s.mean() == pytest.approx(20.0, rel=0.02)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 6))
def test_replays_agree(models, capacity):
    times = np.arange(len(models)) * 0.75
    rows = lru_replay_slow(times, models, capacity)
    for found in (lru_evictions(times, models, capacity), simulate_lru(times, models, capacity)):
        assert list(zip(found.stay_s.tolist(), found.idle_s.tolist(), strict=True)) == rows


def test_what_evicts_nothing_or_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="so none is evicted; hold fewer"):
        LruCache(models=3, capacity=3, rate_per_s=1.0)
    with pytest.raises(InputError, match="times_s"):
        LruCache(models=3, capacity=1, rate_per_s=1.0).gone([-1.0])
    for times, model in (([1.0, 0.0], [0, 0]), ([0.0], [0, 1]), ([0.0], [-1]), ([], [])):
        with pytest.raises(InputError):
            lru_evictions(times, model, 1)
    with pytest.raises(InputError, match="capacity"):
        lru_evictions([0.0], [0], 0)
