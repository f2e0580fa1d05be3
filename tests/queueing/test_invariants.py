"""What must hold for every waiting line: Little's law, PASTA, order, limits, and formulas that must coincide."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.queueing import (
    Customers,
    Deterministic,
    Exponential,
    Gamma,
    TwoMoments,
    active_models,
    batched_path,
    batched_service,
    draw_customers,
    fastest_free,
    fastest_free_bounds,
    fastest_free_path,
    first_come_path,
    gg1_bounds,
    ggc,
    gimc,
    known_errors,
    md1,
    mdc,
    mg1,
    mm1,
    mmc,
    mmck,
    polling,
    processor_sharing_path,
    rotation_path,
)
from workbench.queueing.model import APPROXIMATIONS

loads = st.floats(0.02, 0.98)
counts = st.integers(1, 40)
rates = st.floats(0.01, 100)
near = pytest.approx


@given(loads, rates, counts)
def test_littles_law_holds_in_every_formula(load, rate, servers):
    lines = [
        mmc(load * servers * rate, rate, servers),
        mmck(load * servers * rate, rate, servers, servers + 5),
        mdc(load * servers * rate, 1 / rate, servers),
        gimc(load * servers * rate, 4.0, rate, servers),
        mg1(load * rate, Gamma(mean_s=1 / rate, scv=2.0)),
        ggc(load * servers * rate, 2.0, rate, 3.0, servers),
        fastest_free(load * servers * rate, [rate], [servers]),
    ]
    for line in lines:
        assert line.mean_waiting == near(line.arrival_rate_per_s * line.mean_wait_s, rel=1e-12, abs=1e-300)
        assert line.mean_in_system == near(line.arrival_rate_per_s * line.mean_response_s, rel=1e-9)
        assert 0 <= line.mean_wait_s <= line.mean_response_s
        assert line.utilisation == near(line.arrival_rate_per_s / (1 if line.queue == "M/G/1" else servers) / rate)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_littles_law_holds_on_every_path_between_two_empty_instants(seed, servers):
    """Number in the system averaged over time against rate times mean response: no statistics, an identity."""
    customers = draw_customers(Exponential(mean_s=1.0), Gamma(mean_s=0.5, scv=2.0), 60, seed)
    queue = np.random.default_rng(seed).integers(3, size=60)
    for path in (
        first_come_path(customers, servers),
        fastest_free_path(customers, [1.0, 0.5], [servers, 1]),
        processor_sharing_path(customers),
        batched_path(customers, 0.5, 0.1, 2, 4),
        rotation_path(customers, queue, [0.1]),
    ):
        end = float(np.nanmax(path.finish_s)) + 1
        served = ~np.isnan(path.finish_s)
        assert path.mean_in_system(0.0, end) * end == near(path.response_s[served].sum())
        assert path.mean_waiting(0.0, end) * end == near(path.wait_s[served].sum())
        instants = np.sort(np.concatenate([path.arrival_s, path.finish_s[served]]))
        between = np.diff(instants) @ path.in_system((instants[1:] + instants[:-1]) / 2)
        assert between == near(path.response_s[served].sum())


def test_poisson_arrivals_see_time_averages_and_bursts_do_not():
    """PASTA: arrivals find what a camera sees; arrivals in bursts find σ/ρ times as many (GI/M/1)."""
    for scv in (1.0, 9.0):
        gaps = Gamma(mean_s=1.25, scv=scv)
        path = first_come_path(draw_customers(gaps, Exponential(mean_s=1.0), 400_000, seed=7))
        found = path.in_system(path.arrival_s).mean()
        seen = path.mean_in_system(0.0, float(path.arrival_s[-1]))
        assert found / seen == near(gimc(0.8, scv, 1.0, 1).sigma / 0.8, rel=0.01)
    assert found / seen > 1.15


@given(loads, rates, counts)
def test_more_load_never_waits_less_and_more_servers_never_wait_longer(load, rate, servers):
    arrivals = load * servers * rate
    assert mmc(arrivals, rate, servers).mean_wait_s <= mmc(arrivals * 1.01, rate, servers).mean_wait_s
    assert mmc(arrivals, rate, servers + 1).mean_wait_s <= mmc(arrivals, rate, servers).mean_wait_s
    assert mdc(arrivals, 1 / rate, servers).mean_wait_s <= mmc(arrivals, rate, servers).mean_wait_s * (1 + 1e-9)
    assert gimc(arrivals, 0.5, rate, servers).mean_wait_s <= gimc(arrivals, 2.0, rate, servers).mean_wait_s
    # one fast server is busy alone where many slow ones idle: it waits longer and yet answers sooner
    one, many = mmc(arrivals, rate * servers, 1), mmc(arrivals, rate, servers)
    assert one.mean_wait_s >= many.mean_wait_s * (1 - 1e-9)
    assert one.mean_response_s <= many.mean_response_s * (1 + 1e-9)


@given(loads, rates)
def test_special_cases_coincide(load, rate):
    arrivals, one = load * rate, mm1(load * rate, rate)
    for other in (
        mmc(arrivals, rate, 1),
        mg1(arrivals, Exponential(mean_s=1 / rate)),
        gimc(arrivals, 1.0, rate, 1),
        fastest_free(arrivals, [rate]),
        ggc(arrivals, 1.0, rate, 1.0, 1, "kingman"),
        ggc(arrivals, 1.0, rate, 1.0, 1, "kimura"),
        batched_service(arrivals, 0.0, 1 / rate, 1.0, 1),
    ):
        assert other.mean_wait_s == near(one.mean_wait_s, rel=1e-9)
    assert mdc(arrivals, 1 / rate, 1).mean_wait_s == near(one.mean_wait_s / 2, rel=1e-9)
    assert md1(arrivals, 1 / rate).mean_wait_s == near(one.mean_wait_s / 2, rel=1e-9)


@given(loads, rates, counts)
def test_servers_of_equal_rate_are_mmc_however_they_are_grouped(load, rate, servers):
    arrivals = load * (servers + 2) * rate
    same = mmc(arrivals, rate, servers + 2)
    found = fastest_free(arrivals, [rate, rate], [servers, 2])
    bounds = fastest_free_bounds(arrivals, [rate, rate], [servers, 2])
    assert found.mean_wait_s == near(same.mean_wait_s, rel=1e-9, abs=1e-250)
    assert found.wait_probability == near(same.wait_probability, rel=1e-9, abs=1e-250)
    assert (bounds.in_system_lower, bounds.in_system_upper) == near((same.mean_in_system,) * 2, rel=1e-9)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.integers(1, 4)), min_size=1, max_size=4), loads)
def test_bounds_bracket_the_exact_value(classes, load):
    rate, slots = zip(*classes, strict=True)
    arrivals = load * sum(mu * c for mu, c in classes)
    exact, bounds = fastest_free(arrivals, rate, slots), fastest_free_bounds(arrivals, rate, slots)
    assert bounds.in_system_lower <= exact.mean_in_system * (1 + 1e-9)
    assert exact.mean_in_system <= bounds.in_system_upper * (1 + 1e-9)
    served = sum(mu * c * busy for (mu, c), busy in zip(classes, exact.class_utilisation, strict=True))
    assert served == near(arrivals, rel=1e-8)


@given(loads, st.floats(0, 20), st.floats(0, 20))
def test_moment_bounds_bracket_what_is_exact(load, arrival_scv, service_scv):
    bounds = gg1_bounds(load, arrival_scv, 1.0, 1.0)
    exact = gimc(load, arrival_scv, 1.0, 1).mean_wait_s
    assert bounds.lower_s <= exact <= bounds.upper_s * (1 + 1e-12)
    bounds = gg1_bounds(load, 1.0, 1.0, service_scv)
    exact = mg1(load, TwoMoments(mean_s=1.0, scv=service_scv)).mean_wait_s
    assert bounds.lower_s <= exact <= bounds.upper_s * (1 + 1e-12)


@given(loads, counts, st.floats(0.001, 0.999))
def test_quantiles_invert_the_distributions(load, servers, part):
    for line in (mmc(load * servers, 1.0, servers), gimc(load * servers, 4.0, 1.0, servers), md1(load, 1.0)):
        wait = line.wait_quantile_s(part)
        assert line.wait_exceeds(wait) <= (1 - part) * (1 + 1e-9)
        if wait > 0:
            assert line.wait_exceeds(wait * (1 - 1e-6)) >= (1 - part) * (1 - 1e-9)
    for line in (mmc(load * servers, 1.0, servers), gimc(load * servers, 4.0, 1.0, servers)):
        assert line.response_exceeds(line.response_quantile_s(part)) == near(1 - part, rel=1e-9)
        assert line.response_exceeds(0.0) == near(1.0)


@given(loads, counts)
def test_the_mean_is_the_area_under_the_tail(load, servers):
    """Mean response and mean wait from their distributions by quadrature, also where the two rates coincide."""
    from scipy.integrate import quad

    for line in (mmc(load * servers, 1.0, servers), mmc(float(servers), 1.0, servers + 1)):
        scale = line.mean_response_s
        waits = quad(line.wait_exceeds, 0, 60 * scale, limit=200, points=[scale])[0]
        stays = quad(line.response_exceeds, 0, 60 * scale, limit=200, points=[scale])[0]
        assert waits == near(line.mean_wait_s, rel=1e-5, abs=1e-9)
        assert stays == near(line.mean_response_s, rel=1e-5)


@given(st.floats(0.05, 0.95))
@settings(max_examples=25)
def test_the_mean_of_md1_is_the_area_under_its_tail(load):
    from scipy.integrate import quad

    line = md1(load, 1.0)
    pieces = itertools.pairwise(range(0, int(40 / (1 - load)) + 1))
    area = sum(quad(line.wait_exceeds, low, high)[0] for low, high in itertools.takewhile(lambda p: p[0] < 60, pieces))
    tail = line.wait_exceeds(60.0) / (1 - load)  # a little less than what is left out
    assert area <= line.mean_wait_s * (1 + 1e-8) <= (area + 2 * tail) * (1 + 2e-8)


def test_levels_of_mmc_add_up_and_many_places_are_no_limit():
    line = mmc(2.4, 1.0, 3)
    assert line.in_system_at_least(0) == near(1.0)
    assert sum(line.in_system_at_least(k) for k in range(1, 400)) == near(line.mean_in_system)
    assert mmck(2.4, 1.0, 3, 2000).mean_wait_s == near(line.mean_wait_s)
    assert mmck(2.4, 1.0, 3, 3).blocking_probability == near(line.erlang_b)


def test_a_batch_without_fixed_cost_is_one_server_and_without_cost_per_job_is_many():
    """Steps of b n seconds serve 1/(g b) jobs a second whatever n; steps of a seconds are B independent servers."""
    assert batched_service(8.0, 0.0, 0.001, 100.0, 16).mean_in_system == near(mm1(8.0, 10.0).mean_in_system)
    servers = batched_service(8.0, 0.01, 0.0, 100.0, 16)
    assert servers.mean_in_system == near(mmc(8.0, 1.0, 16).mean_in_system)
    assert servers.wait_probability == near(mmc(8.0, 1.0, 16).wait_probability)


@given(st.integers(1, 12), st.floats(0.05, 0.6), st.floats(0.001, 0.05))
def test_polling_disciplines_are_ordered_and_walking_costs(queues, load, walk):
    args = (queues, load / queues, Exponential(mean_s=1.0), Deterministic(mean_s=walk))
    exhaustive, gated, one = (polling(*args, discipline) for discipline in ("exhaustive", "gated", "one-limited"))
    assert exhaustive.mean_wait_without_walking_s < exhaustive.mean_wait_s <= gated.mean_wait_s
    assert gated.mean_wait_s <= one.mean_wait_s * (1 + 1e-12)
    assert exhaustive.mean_wait_without_walking_s == near(mm1(load, 1.0).mean_wait_s)


@given(st.lists(st.floats(0, 3), min_size=1, max_size=30), st.floats(0.1, 2))
def test_active_models_of_unequal_rates(rates_per_s, time_s):
    if not any(rates_per_s):
        return
    found = active_models(rates_per_s, time_s)
    level = np.arange(found.models + 1)
    assert found.count_probability.sum() == near(1.0)
    assert found.count_probability @ level == near(found.mean_active)
    assert found.count_probability @ (level - found.mean_active) ** 2 == near(found.variance_active, abs=1e-9)
    alike = active_models(float(np.mean(rates_per_s)), time_s, len(rates_per_s))
    assert found.mean_active <= alike.mean_active * (1 + 1e-9)  # unequal rates pool better
    low, high = found.band(0.9)
    assert found.count_probability[low : high + 1].sum() >= 0.9 * (1 - 1e-12)


def test_active_models_are_the_busy_ones_of_a_simulation():
    """Independent M/G/∞ queues simulated, and the models busy at random instants counted; a 5 sigma band."""
    rng = np.random.default_rng(3)
    rates_per_s, horizon, instants = rng.uniform(0.05, 0.4, 30), 4000.0, np.linspace(200, 3900, 400)
    busy = np.zeros((30, instants.size), dtype=bool)
    for model, rate in enumerate(rates_per_s):
        arrival = np.sort(rng.random(rng.poisson(rate * horizon))) * horizon
        finish = arrival + rng.lognormal(0.5, 1.0, arrival.size)
        busy[model] = np.searchsorted(arrival, instants) > np.searchsorted(np.sort(finish), instants)
    exact = active_models(rates_per_s, float(np.exp(1.0)))
    spread = (exact.variance_active / instants.size) ** 0.5
    assert abs(busy.sum(axis=0).mean() - exact.mean_active) < 5 * spread
    assert busy.sum(axis=0).var() == near(exact.variance_active, rel=0.4)


@pytest.mark.parametrize("method", sorted(APPROXIMATIONS))
def test_the_error_a_label_names_is_the_one_against_exact_queues(method):
    """The worst error over the cases named, rounded outwards to a whole percent."""
    misses = known_errors(method, (0.8, 0.9, 0.95), (1, 2, 4, 8, 16), (0.25, 1.0, 4.0))["relative_error"]
    low, high = APPROXIMATIONS[method].misses
    assert low - 1e-9 <= misses.min() <= low + 0.0101
    assert high - 0.0101 <= misses.max() <= high + 1e-9
    told = ggc(0.8, 1.0, 1.0, 1.0, method=method)
    assert told.kind == "approximation"
    assert f"{low:+.0%} to {high:+.0%}" in told.known_error


def test_kimura_is_within_ten_percent_of_simulated_queues_up_to_a_load_of_085():
    """Lognormal services of SCV 2 at four servers; the interval of twenty runs is half as wide as the band."""
    from workbench.queueing import Lognormal
    from workbench.queueing.statistics import replicate

    service = Lognormal(mean_s=1.0, scv=2.0)
    for load in (0.6, 0.85):
        found = replicate(
            lambda seed, load=load: (
                first_come_path(draw_customers(Exponential(mean_s=1 / (4 * load)), service, 100_000, seed), 4)
                .wait_s[5000:]
                .mean()
            ),
            20,
            seed=2,
        ).interval()
        about = ggc(4 * load, 1.0, 1.0, 2.0, 4, "kimura").mean_wait_s
        assert found.relative < 0.05
        assert abs(about / found.mean - 1) < 0.10


def test_customers_of_a_path_are_served_in_order_and_never_before_they_come():
    customers = draw_customers(Gamma(mean_s=0.4, scv=4.0), Gamma(mean_s=1.0, scv=4.0), 5000, seed=1)
    for path in (first_come_path(customers, 3), fastest_free_path(customers, [1.0, 2.0])):
        assert (path.wait_s >= 0).all()
        assert (np.diff(path.start_s) >= 0).all()
    assert (first_come_path(Customers(*customers), 10_000).wait_s == 0).all()
