"""Compiled simulations against exact values: the interval holds them, and as often as it promises.

For every queue 400 experiments of six independent runs each; the share of 95 % intervals that hold the exact value must
lie in the central 99 % of the binomial distribution. Runs are long enough for their means to be nearly
normal; shorter ones make intervals that hold the value less often than they promise.
"""

import numpy as np
import pytest

from workbench.queueing import (
    Customers,
    Deterministic,
    Exponential,
    Gamma,
    Hyperexponential,
    batched_path,
    batched_service,
    draw_customers,
    fastest_free,
    fastest_free_path,
    first_come_path,
    gimc,
    mdc,
    mg1,
    mm1,
    mmc,
    mmck,
    polling,
    processor_sharing,
    processor_sharing_path,
    rotation_path,
)
from workbench.queueing.statistics import coverage, student_interval

ONE = Exponential(mean_s=1.0)
LONG_TAIL = Hyperexponential(mean_s=1.0, scv=4.0)
EXPERIMENTS, RUNS = 400, 6


def poisson(rate_per_s):
    return Exponential(mean_s=1 / rate_per_s)


def first_come(gaps, service, servers, customers):
    return lambda seed: first_come_path(draw_customers(gaps, service, customers, seed), servers).wait_s


def unequal(customers):
    return lambda seed: (
        fastest_free_path(draw_customers(poisson(4.0), ONE, customers, seed), [1.0, 0.6, 0.25], [3, 2, 4]).response_s
    )


def shared(customers):
    return lambda seed: processor_sharing_path(draw_customers(poisson(0.7), LONG_TAIL, customers, seed)).response_s


def rotating(discipline, customers):
    def run(seed):
        drawn = draw_customers(poisson(0.6), ONE, customers, seed)
        queue = np.random.default_rng(seed).integers(4, size=customers)
        return rotation_path(drawn, queue, [0.1], discipline).wait_s

    return run


def batches(customers):
    """Blocked jobs have no response and are left out of the mean."""

    def run(seed):
        drawn = draw_customers(poisson(5.0), Exponential(mean_s=10.0), customers, seed)
        response = batched_path(drawn, 0.05, 0.01, 8, 12).response_s
        return response[~np.isnan(response)]

    return run


def blocked(customers):
    """Share turned away by three servers without a queue, as a series of noughts and ones."""

    def run(seed):
        drawn = draw_customers(poisson(2.4), ONE, customers, seed)
        return np.isnan(batched_path(Customers(*drawn), 1.0, 0.0, 3, 3).finish_s).astype(float)

    return run


CASES = {
    "M/M/1 at 0.8": (first_come(poisson(0.8), ONE, 1, 9000), mm1(0.8, 1).mean_wait_s),
    "M/M/3 at 0.8": (first_come(poisson(2.4), ONE, 3, 9000), mmc(2.4, 1, 3).mean_wait_s),
    "M/D/4 at 0.8": (first_come(poisson(3.2), Deterministic(mean_s=1.0), 4, 9000), mdc(3.2, 1, 4).mean_wait_s),
    "M/H2/1 at 0.6": (first_come(poisson(0.6), LONG_TAIL, 1, 9000), mg1(0.6, LONG_TAIL).mean_wait_s),
    "gamma/M/4 at 0.6": (
        first_come(Gamma(mean_s=1 / 2.4, scv=4.0), ONE, 4, 16_000),
        gimc(2.4, 4.0, 1, 4).mean_wait_s,
    ),
    "unequal servers at 0.77": (unequal(6000), fastest_free(4, [1, 0.6, 0.25], [3, 2, 4]).mean_response_s),
    "processor sharing at 0.7": (shared(6000), processor_sharing(0.7, 1.0).mean_response_s),
    "exhaustive polling": (
        rotating("exhaustive", 2500),
        polling(4, 0.15, ONE, Deterministic(mean_s=0.1), "exhaustive").mean_wait_s,
    ),
    "gated polling": (rotating("gated", 2500), polling(4, 0.15, ONE, Deterministic(mean_s=0.1), "gated").mean_wait_s),
    "batched service": (batches(3000), batched_service(5.0, 0.05, 0.01, 10, 8, 12).mean_response_s),
    "M/M/3/3": (blocked(3000), mmck(2.4, 1, 3, 3).blocking_probability),
}


@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_the_exact_value_as_often_as_they_promise(name):
    run, exact = CASES[name]
    intervals = []
    for experiment in range(EXPERIMENTS):
        means = []
        for replication in range(RUNS):
            series = run(np.random.SeedSequence(2024, spawn_key=(experiment, replication)))
            means.append(series[series.size // 10 :].mean())
        intervals.append(student_interval(means))
    found = coverage(intervals, exact)
    assert found.kept, found
    everything = student_interval([interval.mean for interval in intervals], 0.999)
    assert everything.holds(exact), (everything, exact)
    assert everything.relative < 0.02
