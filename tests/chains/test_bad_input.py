"""Input that makes no sense: one sentence that names the field, never a traceback, a hang or a wrong number."""

import inspect

import chain_cases as cases
import numpy as np
import polars as pl
import pytest

from workbench import chains, profiles
from workbench.chains import simulated
from workbench.errors import InputError, UserError, WorkbenchError
from workbench.queueing import Exponential

FIVE = cases.FIVE
MADE = chains.compose(FIVE, 1)
SERVED = chains.chains_of(MADE)
GPU = profiles.accelerator("a100-80gb-sxm")
BLOCK = chains.block_of(profiles.model("llama-2-7b"))
RULES = chains.PetalsRules(0, 1, None, np.ones(5))
TIMES = chains.TokenTimes(np.ones((5, 3)), np.ones((5, 3)))

NOT_A_NUMBER = (float("nan"), "x", "", None, True, [], [1.0], np.array([]), np.full(5, np.nan), {}, object(), 1 + 1j)
NOT_A_RATE = (*NOT_A_NUMBER, -1, -float("inf"))
NOT_A_LIST = (None, "x", "", [], [[]], [None], ["a"], [float("nan")], [-1], {}, object(), 1 + 1j, [[1, 2], [3]])

NUMBERS = {
    "needed_per_s of place": lambda bad: chains.place(FIVE, 1, bad),
    "needed_per_s of compose": lambda bad: chains.compose(FIVE, 1, bad),
    "needed_per_s of best_groups": lambda bad: chains.best_groups(FIVE, 1, bad),
    "needed_per_s of fewest_chains": lambda bad: chains.fewest_chains(FIVE, 1, bad),
    "needed_per_s of fewest_job_servers": lambda bad: chains.fewest_job_servers(MADE, bad),
    "needed_per_s of greedy_job_servers": lambda bad: chains.greedy_job_servers(MADE, bad),
    "arrival_rate_per_s of bounds": lambda bad: chains.bounds([1.0, 0.5], [1, 1], bad),
    "arrival_rate_per_s of exact": lambda bad: chains.exact([1.0, 0.5], [1, 1], bad),
    "arrival_rate_per_s of best_dispatch": lambda bad: chains.best_dispatch([1.0, 0.5], [1, 1], bad),
    "arrival_rate_per_s of tune": lambda bad: chains.tune(FIVE, bad),
    "arrival_rate_per_s of bprr": lambda bad: chains.bprr(FIVE, bad),
    "output_tokens of bprr": lambda bad: chains.bprr(FIVE, 0.1, bad),
    "arrival_rate_per_s of break_even_rate": lambda bad: chains.break_even_rate(bad),
    "warm_up of after_warm_up": lambda bad: chains.after_warm_up(chains.dispatch_path(JOBS, SERVED), bad),
    "reserved of reserve": lambda bad: chains.reserve(FIVE, bad),
    "servers of round_trips": lambda bad: chains.round_trips(SITES, bad, np.random.default_rng(0)),
    "kept_bytes of petals": lambda bad: chains.petals(
        FIVE, np.full(5, 0.1), RULES._replace(kept_bytes=bad), np.arange(5)
    ),
    "threshold of threshold_response": lambda bad: chains.threshold_response(0.3, 0.1, bad),
    "step_s of loading_path": lambda bad: chains.loading_path(NEW, bad, 3),
    "jobs of loading_path": lambda bad: chains.loading_path(NEW, 1.0, bad),
    "count of draw_jobs": lambda bad: chains.draw_jobs(Exponential(mean_s=1.0), Exponential(mean_s=1.0), bad, 1),
}
JOBS = chains.draw_jobs(Exponential(mean_s=2.0), Exponential(mean_s=1.0), 50, 1)
SITES = chains.sites_of(profiles.cluster("server-chains-simulation"))


@pytest.mark.parametrize("where", NUMBERS)
def test_what_is_no_number_or_no_rate(where):
    for bad in NOT_A_RATE:
        with pytest.raises(WorkbenchError) as caught:
            NUMBERS[where](bad)
        assert where.split(" of ")[0] in str(caught.value), bad
        assert len(str(caught.value)) < 300
        assert "\n" not in str(caught.value)


LISTS = {
    "order": lambda bad: chains.petals(FIVE, np.full(5, 0.1), RULES, bad),
    "round_trip_s": lambda bad: chains.petals(FIVE, bad, RULES, np.arange(5)),
    "accelerators": lambda bad: chains.token_times(bad, [0.1], BLOCK),
    "usual": lambda bad: chains.fleet_of([GPU] * 5, 3, BLOCK, TIMES, bad),
    "rates_per_s": lambda bad: chains.bounds(bad, [1, 1], 0.3),
    "slots": lambda bad: chains.chains_with([1.0, 0.5], bad),
    "sizes": lambda bad: chains.sized_jobs([0.0, 1.0], bad),
    "arrival_s": lambda bad: chains.sized_jobs(bad, [1.0, 1.0]),
    "jobs": lambda bad: chains.fit_compute(bad, [1.0] * 4),
    "seconds": lambda bad: chains.fit_compute([(1, 2, 3), (2, 2, 3), (1, 4, 3), (1, 2, 9)], bad),
    "'y'": lambda bad: chains.straightness([0.0, 1.0], bad),
    "most_blocks": lambda bad: chains.petals(
        FIVE, np.full(5, 0.1), RULES._replace(most_blocks=bad if bad is not None else "x"), np.arange(5)
    ),
    "blocks": lambda bad: chains.allocate(FIVE, MADE.placement._replace(blocks=bad)),
    "memory_bytes": lambda bad: FIVE.__class__(**FIVE.model_dump() | {"memory_bytes": bad}),
}


@pytest.mark.parametrize("field", LISTS)
def test_what_is_no_list_of_numbers(field):
    for bad in NOT_A_LIST:
        if field == "accelerators" and bad == []:
            continue  # a list of none: the round trips are too many
        with pytest.raises(WorkbenchError) as caught:
            LISTS[field](bad)
        assert field in str(caught.value), bad
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [0, "x", None, [3], np.zeros(2)])
def test_what_is_no_chain_no_policy_and_no_orchestrator(bad):
    with pytest.raises(InputError, match="'accelerators'"):
        chains.fleet_of(bad, 3, BLOCK, TIMES, [1.0, 1.0, 1.0])
    if bad is not None:  # None: those of the composition
        with pytest.raises(InputError, match="'chains'"):
            chains.fewest_job_servers(MADE, 0.2, bad)
    for call in (lambda: chains.dispatcher(bad), lambda: chains.dispatch_path(JOBS, SERVED, bad)):
        with pytest.raises(WorkbenchError) as caught:
            call()
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="orchestrator"):
        chains.round_trips(SITES, 5, np.random.default_rng(0), bad)


ONE_REQUEST = pl.DataFrame({"arrival_s": [0.0], "prompt_tokens": [9.0], "output_tokens": [2.0]})
RANDOM = np.random.default_rng(0)
PLACED = MADE.placement
ROUTED = chains.petals(FIVE, np.full(5, 0.1), RULES, np.arange(5))
CHANGING = chains.plan([-np.inf], [MADE], 1e9)
ONE = chains.Fleet(memory_bytes=[30], communication_s=[1], compute_s=[1], layers=2, block_bytes=10, cache_bytes=1)
NEW = chains.new_chains(ONE, [2], [np.array([[1, 2]])], [(0,)])
CALLS = {
    "after_warm_up": (chains.dispatch_path(JOBS, SERVED),), "all_chains": (FIVE, PLACED),
    "allocate": (FIVE, PLACED), "best_groups": (FIVE, 1, 0.1), "block_of": (profiles.model("llama-2-7b"),),
    "bprr": (FIVE, 0.1), "chains_of": (MADE, TIMES, np.ones(3)), "compose": (FIVE, 1), "count_chains": (FIVE, PLACED),
    "dispatch_path": (JOBS, SERVED), "fewest_chains": (FIVE, 1, 0.1), "fewest_job_servers": (MADE, 0.1),
    "fleet_of": ([GPU] * 5, 3, BLOCK, TIMES, np.ones(3)), "free_slots": (FIVE, PLACED),
    "greedy_job_servers": (MADE, 0.1), "jobs_of_requests": (ONE_REQUEST,),
    "loading_path": (NEW, 1.0, 3), "missing_blocks": (PLACED, PLACED),
    "new_chains": (ONE, [2], [np.array([[1, 2]])], [(0,)]),
    "petals": (FIVE, np.full(5, 0.1), RULES, np.arange(5)), "place": (FIVE, 1),
    "plan_windows": (chains.Windows(FIVE, [1]), [0.1], 1.0), "random_orders": (FIVE, 1, 0.1, 2, RANDOM),
    "reserve": (FIVE, 1), "round_trips": (SITES, 5, RANDOM), "routed_path": (JOBS, ROUTED),
    "servers_of": (profiles.cluster("server-chains-simulation"),),
    "sites_of": (profiles.cluster("server-chains-simulation"),), "switching_path": (JOBS, CHANGING),
    "token_times": ([GPU], [0.1], BLOCK, chains.OVERHEADS), "tune": (FIVE, 0.1),
    "tune_each": (FIVE, [0.1]), "whole_models": (FIVE,),
    "with_work": (ROUTED, np.ones((5, 1)), np.ones((5, 1)), np.ones(1)),
    "simulate_dispatch": (JOBS, SERVED), "simulate_loading": (NEW, 1.0, 3), "simulate_routed": (JOBS, ROUTED),
    "simulate_steps": (JOBS, SERVED, TIMES), "simulate_switching": (JOBS, CHANGING),
}  # fmt: skip
"""Each function that takes a record, and arguments of a call."""
WITHOUT = {"draw_jobs", "plan", "dispatcher", "in_fractions"}
"""Take lists, functions or distributions, which are refused elsewhere."""


def records_of(function):
    """Places of the arguments that are objects of one type, and the names of these and of their types."""
    for place, one in enumerate(inspect.signature(function).parameters.values()):
        written = str(one.annotation if not isinstance(one.annotation, type) else one.annotation.__qualname__)
        whole_name = written.removesuffix(" | None")
        kind = whole_name.split(".")[-1]
        if kind[:1].isupper() and kind.isalnum() and " " not in whole_name:
            yield place, one.name, kind, one.default is None


def test_every_function_that_takes_records_refuses_what_is_none():
    tried = set()
    for room in (chains, simulated):
        for name, function in inspect.getmembers(room, inspect.isfunction):
            if name in WITHOUT or not (records := list(records_of(function))):
                continue
            tried.add(name)
            given = CALLS[name]
            if name != "simulate_steps":  # wants requests with tokens
                function(*given)
            for place, argument, kind, optional in records:
                for bad in (3, "x", object(), [FIVE], *(() if optional else (None,))):
                    with pytest.raises(
                        InputError, match=f"^field '{argument}': is .*; give an object of type {kind}.$"
                    ):
                        function(*given[:place], bad, *given[place + 1 :])
                    named = dict(zip(inspect.signature(function).parameters, given, strict=False)) | {argument: bad}
                    with pytest.raises(InputError, match=f"give an object of type {kind}"):
                        function(**named)
    assert tried == set(CALLS)


@pytest.mark.parametrize("rate", [1e-320, 1e-12, 1e-3])
def test_rates_next_to_nothing(rate):
    """One job on the quickest chain reaches them; and nothing overflows."""
    assert chains.fewest_job_servers(MADE, rate).job_servers == 1
    assert chains.greedy_job_servers(MADE, rate) == 1
    assert chains.fewest_chains(FIVE, 1, rate) == 1
    assert chains.greedy_job_servers(MADE, 1e308) is None
    assert chains.fewest_job_servers(MADE, 1e308) is None


@pytest.mark.parametrize("rate", [1e-5, 1e-3])
def test_the_best_dispatch_of_few_arrivals_is_found(rate):
    """Few arrivals: a slot of a tenth of the speed is left alone, and the fast one is M/M/1 but for a line of nine."""
    found = chains.best_dispatch([1.0, 0.1], [1, 1], rate, longest=20, tolerance=1e-4 * rate)
    assert found.mean_response_s == pytest.approx(1 / (1 - rate), rel=2e-4)


def test_the_best_dispatch_of_hardly_any_arrivals_needs_a_tolerance_to_match():
    for rate in (1e-320, 1e-9):
        with pytest.raises(InputError, match="'tolerance'"):
            chains.best_dispatch([1.0, 0.5], [1, 1], rate)


def test_one_server_one_block_and_many_slots():
    one = FIVE.__class__(
        memory_bytes=[100_010], communication_s=[1.0], compute_s=[0.0], layers=1, block_bytes=10, cache_bytes=1
    )
    made = chains.compose(one, 1)
    assert (made.job_servers, chains.count_chains(one, made.placement)) == (100_000, 1)
    assert chains.best_groups(one, 1, 1.0) == ((0,),)
    assert chains.best_groups(one, 1, 1.5) is None
    found = chains.bounds(made.rates_per_s, made.capacities, 50_000.0)
    assert found.response_lower_s == found.response_upper_s == pytest.approx(1.0)
    path = chains.dispatch_path(JOBS, chains.chains_of(made))
    assert path.wait_s.max() == 0
    small = one.model_copy(update={"memory_bytes": np.array([10])})
    assert chains.compose(small, 1).chains == ()
    assert chains.count_chains(small, chains.place(small, 1)) == 0
    assert chains.best_groups(small, 1, 0.1) is None
