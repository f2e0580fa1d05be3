"""Prints how fast waiting lines are computed, beside Ciw and SimPy; run with `pytest -s tests/benchmarks`."""

import statistics
import time

import ciw
import numpy as np
import pytest
from timing import median_s

from workbench.queueing import (
    Exponential,
    batched_path,
    curve,
    draw_customers,
    fastest_free,
    fastest_free_bounds,
    fastest_free_path,
    first_come_path,
    lindley_waits,
    mdc,
    mmc,
    processor_sharing_path,
    rotation_path,
)
from workbench.queueing.kernels.first_come import first_come
from workbench.queueing.simulated import simulate_fastest_free, simulate_first_come
from workbench.queueing.statistics import student_interval

ONE = Exponential(mean_s=1.0)
POISSON = Exponential(mean_s=1 / 2.4)


def ciw_waits(horizon_s, seed):
    """Waits of M/M/3 at load 0.8 by Ciw, and the seconds its simulation took."""
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(2.4)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[3],
    )
    simulation = ciw.Simulation(network)
    start = time.perf_counter()
    simulation.simulate_until_max_time(horizon_s)
    taken = time.perf_counter() - start
    records = sorted(simulation.get_all_records(), key=lambda record: record.arrival_date)
    return np.array([record.waiting_time for record in records]), taken


def test_sample_paths_of_three_servers_beside_ciw():
    """Budget: at least 200 times Ciw's customers a second in the same run, drawing included as Ciw does; both agree."""
    ciw_rates, ciw_means = [], []
    for seed in range(5):
        waits, taken = ciw_waits(5000.0, seed)
        ciw_rates.append(waits.size / taken)
        ciw_means.append(waits[1000:].mean())
    ciw_rate = statistics.median(ciw_rates)

    count = 2_000_000
    customers = draw_customers(POISSON, ONE, count, seed=1)
    start = np.empty(count)
    recursion = count / median_s(lambda: first_come(customers.arrival_s, customers.service_s, 3, start))
    whole = count / median_s(lambda: first_come_path(draw_customers(POISSON, ONE, count, seed=1), 3).wait_s.mean())
    small = draw_customers(POISSON, ONE, 20_000, seed=1)
    simpy_rate = 20_000 / median_s(lambda: simulate_first_come(small, 3), repeats=3)

    print(
        f"\nM/M/3 at load 0.8, customers/s: recursion {recursion / 1e6:.1f} M ({recursion / ciw_rate:,.0f}x Ciw), "
        f"drawing, checks and mean included {whole / 1e6:.1f} M ({whole / ciw_rate:,.0f}x); "
        f"SimPy {simpy_rate:,.0f}; Ciw {ciw.__version__} {ciw_rate:,.0f}"
    )
    exact = mmc(2.4, 1.0, 3).mean_wait_s
    assert student_interval(ciw_means, 0.99).holds(exact)
    assert first_come_path(customers, 3).wait_s[1000:].mean() == pytest.approx(exact, rel=0.03)
    assert recursion >= 200 * ciw_rate
    assert whole >= 200 * ciw_rate


def test_other_sample_paths():
    """No budget."""
    count = 500_000
    customers = draw_customers(POISSON, ONE, count, seed=1)
    single = customers._replace(service_s=customers.service_s / 3)
    gaps, queue = np.diff(customers.arrival_s, prepend=0.0), np.random.default_rng(1).integers(4, size=count)
    calls = {
        "Lindley": lambda: lindley_waits(gaps, single.service_s),
        "100 servers": lambda: first_come_path(customers._replace(service_s=customers.service_s * 33), 100),
        "unequal servers": lambda: fastest_free_path(customers, [0.5, 1.0, 2.0], [2, 1, 1]),
        "processor sharing": lambda: processor_sharing_path(single),
        "batches of 64": lambda: batched_path(single._replace(service_s=single.service_s * 100), 0.02, 0.0005, 64),
        "four queues in turn": lambda: rotation_path(single, queue, [0.05]),
    }
    for name, call in calls.items():
        print(f"\n{name}: {count / median_s(call) / 1e6:.1f} M customers/s")
    small = draw_customers(POISSON, ONE, 20_000, seed=1)
    twin = 20_000 / median_s(lambda: simulate_fastest_free(small, [0.5, 1.0, 2.0], [2, 1, 1]), repeats=3)
    print(f"\nunequal servers in SimPy: {twin:,.0f} customers/s")


def test_closed_forms():
    """Budget of an explorer: new figure data within 50 ms; the exact chain of unequal servers is printed by size."""
    rates = np.linspace(0.01, 2.99, 300)
    line = median_s(
        lambda: curve(mmc, arrival_rate_per_s=rates, service_rate_per_s=1.0, servers=3, wait_quantiles=(0.5, 0.99))
    )
    print(f"\ncurve of 300 points of M/M/3 with two quantiles: {line * 1e3:.1f} ms")
    for servers in (3, 1000, 10_000):
        print(f"M/M/{servers} at load 0.9999: {median_s(lambda c=servers: mmc(0.9999 * c, 1.0, c)) * 1e6:.0f} µs")
        print(f"M/D/{servers} at load 0.9: {median_s(lambda c=servers: mdc(0.9 * c, 1.0, c)) * 1e6:.0f} µs")
    for slots in ((1, 1), (3, 2, 4), (10, 10, 10), (30, 30, 30)):
        mu = (1.0, 0.6, 0.25)[: len(slots)]
        arrivals = 0.85 * sum(rate * count for rate, count in zip(mu, slots, strict=True))
        exact = median_s(lambda a=arrivals, m=mu, s=slots: fastest_free(a, m, s), repeats=3)
        bounds = median_s(lambda a=arrivals, m=mu, s=slots: fastest_free_bounds(a, m, s), repeats=3)
        print(f"unequal servers {slots}: exact chain {exact * 1e3:.1f} ms, bounds {bounds * 1e3:.2f} ms")
    assert line <= 0.05
