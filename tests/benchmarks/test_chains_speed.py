"""Prints how fast chains are formed, bounded and run; run with `pytest -s tests/benchmarks`."""

import numpy as np
from timing import median_s

from workbench.chains import Fleet, bounds, chains_with, compose, dispatch_path, draw_jobs, tune
from workbench.chains.simulated import simulate_dispatch
from workbench.queueing import Exponential


def hundred():
    """100 servers of 3 to 40 GB for 100 blocks of 1.32 GB."""
    rng = np.random.default_rng(1)
    return Fleet(
        memory_bytes=rng.integers(3, 40, 100) * 10**9,
        communication_s=rng.uniform(0.5, 1, 100),
        compute_s=rng.uniform(0.1, 0.2, 100),
        layers=100,
        block_bytes=1.32e9,
        cache_bytes=117_440_512,
    )


def test_placement_and_allocation_of_100_servers_and_100_blocks():
    """Budget: 100 ms."""
    fleet = hundred()
    for c in (1, 7, 20):
        seconds = median_s(lambda c=c: compose(fleet, c))
        print(f"\nGBP-CR and GCA, 100 x 100, c = {c}: {seconds * 1e3:.2f} ms, {len(compose(fleet, c).chains)} chains")
        assert seconds <= 0.1
    print(f"every c with its bounds: {median_s(lambda: tune(fleet, 0.05)):.3f} s")


def test_theorem_4_of_100_000_slots():
    """Budget: 10 ms."""
    rates, slots = np.random.default_rng(1).uniform(0.1, 1, 50), np.full(50, 2000)
    rate = 0.8 * float(rates @ slots)
    seconds = min(median_s(lambda: bounds(rates, slots, rate), 1) for _ in range(20))  # the least: others run beside
    print(f"\nTheorem 4, 100,000 slots: {seconds * 1e3:.1f} ms")
    assert seconds <= 0.01


def test_a_million_jobs_through_20_chains_beside_simpy():
    """Budget: 1 s compiled; SimPy follows 20,000 of the same jobs."""
    chains = chains_with(np.linspace(1, 0.3, 20), [1, 2, 3, 4] * 5)
    jobs = draw_jobs(Exponential(mean_s=1 / (0.8 * chains.rate_per_s)), Exponential(mean_s=1.0), 1_000_000, 1)
    for policy in ("jffc", "sed", "weighted-round-robin"):
        seconds = median_s(lambda policy=policy: dispatch_path(jobs, chains, policy), 3)
        print(f"\n1,000,000 jobs, {policy}: {seconds:.3f} s")
        assert seconds <= 1
    few = jobs.first(20_000)
    simpy_s = median_s(lambda: simulate_dispatch(few, chains), 1)
    compiled_s = median_s(lambda: dispatch_path(few, chains))
    print(f"SimPy: {20_000 / simpy_s:,.0f} jobs/s; compiled {simpy_s / compiled_s:,.0f} times as many")
