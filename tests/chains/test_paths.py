"""Sample paths of dispatch: cases by hand, SimPy and compiled bit for bit, the waiting-line room, and Theorem 4."""

import math

import chain_cases as cases
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.chains import (
    POLICIES,
    JobList,
    after_warm_up,
    bounds,
    chains_of,
    chains_with,
    compose,
    dispatch_path,
    dispatcher,
    draw_jobs,
    exact,
    jobs_of_requests,
    sized_jobs,
)
from workbench.chains.simulated import simulate_dispatch
from workbench.errors import InputError, UnknownName, UserError
from workbench.queueing import (
    Customers,
    Deterministic,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    fastest_free_path,
    mmc,
    processor_sharing_path,
)
from workbench.queueing.statistics import batch_means

ONE = Exponential(mean_s=1.0)


def poisson(rate, count, seed, sizes=ONE):
    return draw_jobs(Exponential(mean_s=1 / rate), sizes, count, seed)


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def on_grid(seed, count=60):
    """Jobs at whole seconds with whole sizes, some of them 0: full of ties."""
    rng = np.random.default_rng(seed)
    return sized_jobs(np.cumsum(rng.integers(0, 2, count)).astype(float), rng.integers(0, 5, count), seed)


@pytest.mark.parametrize("contention", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@given(seed=st.integers(0, 2**32 - 1), grid=st.booleans())
def test_simpy_and_compiled_agree_bit_for_bit(policy, contention, seed, grid):
    rng = np.random.default_rng(seed)
    made = None
    while made is None or not made.chains:
        made = compose(cases.random_fleet(rng, 6, 4), int(rng.integers(1, 3)))
    chains = chains_of(made)
    jobs = on_grid(seed) if grid else poisson(float(rng.uniform(0.3, 1.1)) * chains.rate_per_s, 60, seed)
    compiled = dispatch_path(jobs, chains, policy, contention=contention)
    assert same(compiled, simulate_dispatch(jobs, chains, policy, contention=contention))
    assert not np.isnan(compiled.finish_s).any()


@pytest.mark.parametrize(
    "sizes", [ONE, Deterministic(mean_s=1.0), Gamma(mean_s=1.0, scv=0.5), Lognormal(mean_s=1.0, scv=4.0)]
)
@pytest.mark.parametrize(
    "gaps", [Exponential(mean_s=0.3), Gamma(mean_s=0.3, scv=9.0), Hyperexponential(mean_s=0.3, scv=4)]
)
def test_other_arrivals_and_sizes_agree_too(gaps, sizes):
    chains = chains_with([2.0, 1.0, 0.5], [1, 2, 1])
    jobs = draw_jobs(gaps, sizes, 2000, 11)
    assert same(dispatch_path(jobs, chains), simulate_dispatch(jobs, chains))


def test_fastest_free_is_that_of_unequal_servers():
    """The waiting-line room's recursion, which knows no events, on the same jobs."""
    rng = np.random.default_rng(12)
    for seed in range(5):
        rates, slots = rng.uniform(0.1, 2, 5), rng.integers(1, 5, 5)
        jobs = poisson(0.9 * float(rates @ slots), 20_000, seed)
        ours = dispatch_path(jobs, chains_with(rates, slots))
        theirs = fastest_free_path(Customers(jobs.arrival_s, jobs.work[:, 0]), rates, slots)
        assert np.abs(ours.finish_s - theirs.finish_s).max() < 1e-6
        assert (ours.place == theirs.place).all()


def test_fastest_free_by_hand():
    """Rates 1 and 1/3, one slot each: the third job waits until the fast chain is free at 3, the fourth until 6."""
    jobs = sized_jobs([0.0, 1.0, 2.0, 2.0], [3.0, 2.0, 3.0, 1.0])
    path = dispatch_path(jobs, chains_with([1 / 3, 1.0], [1, 1]))
    assert path.start_s.tolist() == [0.0, 1.0, 3.0, 6.0]
    assert path.place.tolist() == [1, 0, 1, 1]
    assert path.finish_s.tolist() == [3.0, 7.0, 6.0, 7.0]


BY_HAND = {
    # chains A (rate 2, 1 slot) and B (rate 1, 2 slots); jobs of size 4 at 0, 0.5, 1, 1.5: A takes 2 s, B 4 s.
    # A ends at 2, so the second job on A waits from its arrival until then.
    "jffc": ("A B B A", [0.0, 0.5, 1.0, 2.0]),
    "sa-jsq": ("A B B B", [0.0, 0.5, 1.0, 4.5]),  # excess over slots when both are full: A 1/1, B 1/2
    "sed": ("A A B B", [0.0, 2.0, 1.0, 1.5]),  # second job: A 1/2 + 1/2 = 1, B 1/1 + 0 = 1, the first of equal ones
    "round-robin": ("A B A B", [0.0, 0.5, 2.0, 1.5]),
    "weighted-round-robin": ("A B A B", [0.0, 0.5, 2.0, 1.5]),  # weights 2 and 2
}


@pytest.mark.parametrize("policy", BY_HAND)
def test_policies_by_hand(policy):
    names, starts = BY_HAND[policy]
    jobs = sized_jobs([0.0, 0.5, 1.0, 1.5], [4.0] * 4)
    path = dispatch_path(jobs, chains_with([2.0, 1.0], [1, 2]), policy)
    assert "".join("AB"[k] for k in path.place) == names.replace(" ", "")
    assert path.start_s.tolist() == starts


def test_idle_chains_are_taken_at_random_and_full_ones_too():
    """JSQ and JIQ pick among chains with a free slot alike; JIQ among all, whatever their slots, when none has one."""
    jobs = JobList(np.zeros(3000), np.ones((3000, 1)), np.random.default_rng(1).random((3000, 2)))
    for policy in ("jsq", "jiq"):
        first = [
            int(
                dispatch_path(JobList(*(a[i : i + 1] for a in jobs)), chains_with([2, 1, 1], [1, 1, 9]), policy).place[
                    0
                ]
            )
            for i in range(600)
        ]
        assert np.bincount(first, minlength=3) == pytest.approx([200, 200, 200], abs=60)
    full = dispatch_path(jobs, chains_with([2, 1, 1], [1, 1, 9]), "jiq").place[100:]
    assert np.bincount(full, minlength=3) == pytest.approx([967] * 3, abs=130)
    full = dispatch_path(jobs, chains_with([2, 1, 1], [1, 1, 9]), "jsq").place[100:]
    assert np.bincount(full, minlength=3) / 2900 == pytest.approx([1 / 11, 1 / 11, 9 / 11], abs=0.01)


def test_weighted_turns_are_in_proportion():
    jobs = poisson(1.0, 700, 3)
    taken = np.bincount(dispatch_path(jobs, chains_with([3, 2, 1], [1, 2, 0.5 * 2]), "weighted-round-robin").place)
    assert taken.tolist() == [700 * 3 // 8 + 1, 700 * 4 // 8, 700 * 1 // 8]  # weights 3, 4, 1, in turns of 8


@pytest.mark.parametrize(
    ("rates", "slots", "arrivals"),
    [((1, 0.5), (1, 1), 0.75), ((1, 0.5), (2, 3), 2.5), ((0.1, 0.06, 0.05), (4, 3, 3), 0.4)],
)
def test_paths_reach_the_exact_mean(rates, slots, arrivals):
    """The exact chain within 4 standard errors of a path of 400,000 jobs."""
    path = after_warm_up(dispatch_path(poisson(arrivals, 400_000, 2), chains_with(rates, slots)))
    found = batch_means(path.response_s).interval
    error = found.half_width / 2.045
    assert abs(found.mean - exact(rates, slots, arrivals).mean_response_s) < 4 * error
    assert error / found.mean < 0.02


def test_bounds_hold_on_a_hundred_larger_systems():
    """LB <= simulation <= UB within 3 standard errors; up to 20 chains and 100 slots, loads up to 0.9."""
    rng = np.random.default_rng(8)
    for seed in range(100):
        count = int(rng.integers(2, 21))
        rates, slots = rng.uniform(0.05, 1.0, count), rng.integers(1, 6, count)
        arrivals = float(rng.uniform(0.1, 0.9) * (rates @ slots))
        path = after_warm_up(dispatch_path(poisson(arrivals, 40_000, seed), chains_with(rates, slots)))
        found = batch_means(path.response_s).interval
        error = found.half_width / 2.045
        edges = bounds(rates, slots, arrivals)
        assert edges.response_lower_s - 3 * error <= found.mean <= edges.response_upper_s + 3 * error


def test_equal_chains_are_one_line():
    """Equal rates: M/M/5 whatever the grouping."""
    path = after_warm_up(dispatch_path(poisson(4.0, 400_000, 4), chains_with([1.0, 1.0], [2, 3])))
    found = batch_means(path.response_s).interval
    assert abs(found.mean - mmc(4.0, 1.0, 5).mean_response_s) < 4 * found.half_width / 2.045


@given(seed=st.integers(0, 2**32 - 1), policy=st.sampled_from(list(POLICIES)))
def test_no_chain_holds_more_than_its_slots_and_order_is_kept(seed, policy):
    rng = np.random.default_rng(seed)
    slots = rng.integers(1, 4, 3)
    jobs = poisson(2.0, 80, seed)
    path = dispatch_path(jobs, chains_with(rng.uniform(0.2, 1.0, 3), slots), policy)
    assert (path.start_s >= path.arrival_s).all()
    for k in range(3):
        mine = path.place == k
        starts, ends = path.start_s[mine], path.finish_s[mine]
        assert (np.diff(starts) >= 0).all()  # first come first served on a chain
        for now in starts:
            assert ((starts <= now) & (ends > now)).sum() <= slots[k]
    if policy == "jffc":
        assert (np.diff(path.start_s) >= 0).all()


def slow_from_three(inside, slots, rate_per_s, waiting, draw, memory):
    """The fast chain, or the slow one once three wait."""
    if inside[0] < slots[0]:
        return 0
    return 1 if waiting >= 3 and inside[1] < slots[1] else -1


def through_a_dict(inside, slots, rate_per_s, waiting, draw, memory):
    """The same by a way that numba does not take."""
    return {True: lambda: slow_from_three(inside, slots, rate_per_s, waiting, draw, memory)}[True]()


def test_a_users_function_is_compiled_or_asked_by_simpy():
    jobs, chains = poisson(0.6, 2000, 9), chains_with([1.0, 0.1], [1, 1])
    compiled = dispatch_path(jobs, chains, slow_from_three)
    assert same(compiled, dispatch_path(jobs, chains, dispatcher(slow_from_three)))
    assert same(compiled, simulate_dispatch(jobs, chains, slow_from_three))
    assert same(compiled, simulate_dispatch(jobs, chains, through_a_dict))
    with pytest.raises(InputError, match=r"does not compile.*run it in SimPy"):
        dispatch_path(jobs, chains, through_a_dict)


def test_a_threshold_function_reaches_its_exact_mean():
    """λ = 0.6, rates 1 and 0.1: the best threshold is 5 (value iteration); its path against the optimum, 4 errors."""
    from workbench.chains import best_dispatch

    def slow_from_five(inside, slots, rate_per_s, waiting, draw, memory):
        if inside[0] < slots[0]:
            return 0
        return 1 if waiting >= 5 and inside[1] < slots[1] else -1

    path = after_warm_up(dispatch_path(poisson(0.6, 400_000, 10), chains_with([1.0, 0.1], [1, 1]), slow_from_five))
    found = batch_means(path.response_s).interval
    best = best_dispatch([1.0, 0.1], [1, 1], 0.6)
    assert abs(found.mean - best.mean_response_s) < 4 * found.half_width / 2.045
    jffc = after_warm_up(dispatch_path(poisson(0.6, 400_000, 10), chains_with([1.0, 0.1], [1, 1])))
    assert jffc.response_s.mean() > 1.2 * found.mean


@pytest.mark.parametrize("run", [dispatch_path, simulate_dispatch])
def test_functions_that_go_wrong(run):
    jobs, chains = poisson(0.6, 20, 9), chains_with([1.0, 0.5], [1, 1])
    with pytest.raises(UserError, match="returned no chain"):
        run(jobs, chains, lambda inside, slots, rate_per_s, waiting, draw, memory: 2)
    with pytest.raises(UserError, match="leaves jobs in the central line"):
        run(jobs, chains, lambda inside, slots, rate_per_s, waiting, draw, memory: -1)


def test_a_function_that_fails_is_named():
    with pytest.raises(UserError, match="failed with ZeroDivisionError"):
        simulate_dispatch(poisson(1, 3, 1), chains_with([1.0], [1]), lambda *given: 1 // 0)


def fails_for_two(inside, slots, rate_per_s, waiting, draw, memory):
    return 0 if inside[0] < 2 else 1 // (waiting - waiting)


def halves(inside, slots, rate_per_s, waiting, draw, memory):
    return 0.5


def beyond(inside, slots, rate_per_s, waiting, draw, memory):
    return inside[inside.size + 9]


@pytest.mark.parametrize("run", [dispatch_path, simulate_dispatch])
@pytest.mark.parametrize("function", [fails_for_two, halves, beyond])
def test_a_function_that_fails_midway_is_never_taken_for_a_choice(run, function, capfd):
    with pytest.raises(UserError, match="failed"):
        run(poisson(0.9, 500, 3), chains_with([1.0, 0.5], [1, 1]), function)
    assert not capfd.readouterr().err


@pytest.mark.parametrize("run", [dispatch_path, simulate_dispatch])
def test_a_function_changes_nothing_but_its_memory(run):
    def overwrites(inside, slots, rate_per_s, waiting, draw, memory):
        slots[0] = 100
        return 0

    chains = chains_with([1.0, 0.5], [1, 1])
    with pytest.raises(UserError, match=r"write to `memory` only|read-only"):
        run(poisson(0.6, 20, 9), chains, overwrites)
    assert chains.slots.tolist() == [1, 1]


@pytest.mark.parametrize("run", [dispatch_path, simulate_dispatch])
def test_what_is_no_dispatch_function(run):
    jobs, chains = poisson(0.6, 20, 9), chains_with([1.0], [1])
    for policy in (None, 3, ["jffc"]):
        with pytest.raises(InputError, match="give the name of a policy, or a function"):
            run(jobs, chains, policy)


def test_functions_of_other_arguments():
    for function in (lambda: 0, lambda inside: 0, len):
        with pytest.raises(InputError, match="6 arguments"):
            dispatcher(function)


def test_memory_counts_turns_as_round_robin_does():
    """Its own numbers are kept from job to job, and a float that is whole is a choice."""

    def turns(inside, slots, rate_per_s, waiting, draw, memory):
        memory[0] = (memory[0] + 1) % slots.size
        return memory[0]

    jobs, chains = poisson(0.9, 200, 3), chains_with([1.0, 0.5, 0.2], [1, 2, 1])
    path = dispatch_path(jobs, chains, turns)
    assert path.place.tolist() == [(n + 1) % 3 for n in range(200)]
    assert same(path, simulate_dispatch(jobs, chains, turns))


def test_jobs_and_chains_that_do_not_fit():
    chains = chains_with([1.0], [1])
    with pytest.raises(UnknownName, match="near names: jffc"):
        dispatch_path(poisson(1, 3, 1), chains, "jfcc")
    with pytest.raises(InputError, match="needs the servers"):
        dispatch_path(poisson(0.5, 3, 1), chains, contention=True)
    with pytest.raises(InputError, match="3 kinds of work"):
        dispatch_path(JobList(np.zeros(1), np.ones((1, 3)), np.zeros((1, 2))), chains)
    with pytest.raises(InputError, match="lies before the arrival above it"):
        sized_jobs([1.0, 0.0], [1, 1])
    with pytest.raises(InputError, match="1 numbers for 2 arrivals"):
        sized_jobs([0.0, 1.0], [1])
    with pytest.raises(InputError, match="'arrival_s': is no column"):
        jobs_of_requests(pl.DataFrame({"prompt_tokens": [1], "output_tokens": [1]}))


def one_server(communication_s, compute_s, capacity=50):
    """One server that hosts the only block: all jobs share it."""
    fleet = cases.Fleet(
        memory_bytes=[10 + capacity], communication_s=[communication_s], compute_s=[compute_s], layers=1,
        block_bytes=10, cache_bytes=1,
    )  # fmt: skip
    return chains_of(compose(fleet, 1))


def test_contention_without_communication_is_processor_sharing():
    """Each of n jobs loads the server by 1, so each takes n times as long: M/G/1-PS, path by path."""
    jobs = poisson(0.7, 3000, 5)
    ours = dispatch_path(jobs, one_server(0.0, 1.0, 500), contention=True)
    theirs = processor_sharing_path(Customers(jobs.arrival_s, jobs.work[:, 0]))
    assert np.abs(ours.finish_s - theirs.finish_s).max() < 1e-6


def test_contention_by_hand():
    """Jobs of 1 s off and 1 s on the server, each a load of 1/2: two do not slow each other, four take 1 + 2 s."""
    chains = one_server(1.0, 1.0)
    two = dispatch_path(sized_jobs([0.0, 0.0], [1.0, 1.0]), chains, contention=True)
    assert two.finish_s.tolist() == [2.0, 2.0]
    four = dispatch_path(sized_jobs([0.0] * 4, [1.0] * 4), chains, contention=True)
    assert four.finish_s == pytest.approx([3.0] * 4)
    # a fifth at 1.5 makes the load 5/2: 3.5 s a job; half of four is left, 1.75 s, then one alone
    five = dispatch_path(sized_jobs([0.0] * 4 + [1.5], [1.0] * 5), chains, contention=True)
    assert five.finish_s[:4] == pytest.approx([1.5 + 1.75] * 4)
    assert five.finish_s[4] == pytest.approx(1.5 + 1.75 + 2 * (1 - 1.75 / 3.5))


@given(seed=st.integers(0, 2**32 - 1))
def test_contention_never_speeds_up_and_without_load_changes_nothing(seed):
    chains = chains_of(compose(cases.FIVE, 1))
    few = sized_jobs(np.arange(20) * 1000.0, np.random.default_rng(seed).exponential(1, 20))
    assert dispatch_path(few, chains, contention=True).response_s == pytest.approx(
        dispatch_path(few, chains).response_s
    )
    jobs = poisson(0.8 * chains.rate_per_s, 100, seed)
    slowed = dispatch_path(jobs, chains, contention=True)
    nominal = jobs.work[:, 0] * np.array([3.005, 3.010, 3.012])[slowed.place]
    assert (slowed.finish_s - slowed.start_s >= nominal * (1 - 1e-9)).all()


def test_batch_error_of_30_batches():
    """The factor between half width and standard error used above: Student's 0.975 point for 29 degrees."""
    from scipy.special import stdtrit

    assert stdtrit(29, 0.975) == pytest.approx(2.045, abs=5e-4)
    assert math.isclose(
        after_warm_up(dispatch_path(poisson(1, 100, 1), chains_with([2.0], [1])), 0.0).arrival_s.size, 100
    )
