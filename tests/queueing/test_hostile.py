"""What makes no sense is refused in one sentence that names it; what is merely extreme is answered."""

import math
import warnings

import numpy as np
import pytest

import workbench.queueing as wq
from workbench.errors import InputError, UserError
from workbench.queueing import Customers, Deterministic, Exponential, Gamma, Unstable, simulated
from workbench.queueing.statistics import batch_means, coverage, drop_share, mser, replicate, student_interval

ONE = Exponential(mean_s=1.0)

RATES = {
    "mm1": lambda rate: wq.mm1(rate, 1.0),
    "mmc": lambda rate: wq.mmc(rate, 1.0, 3),
    "mmck": lambda rate: wq.mmck(rate, 1.0, 3, 5),
    "mg1": lambda rate: wq.mg1(rate, ONE),
    "md1": lambda rate: wq.md1(rate, 1.0),
    "mdc": lambda rate: wq.mdc(rate, 1.0, 3),
    "gimc": lambda rate: wq.gimc(rate, 4.0, 1.0, 3),
    "ggc": lambda rate: wq.ggc(rate, 4.0, 1.0, 4.0, 3),
    "gg1_bounds": lambda rate: wq.gg1_bounds(rate, 4.0, 1.0, 4.0),
    "processor_sharing": lambda rate: wq.processor_sharing(rate, 1.0),
    "batched_service": lambda rate: wq.batched_service(rate, 0.1, 0.01, 10.0, 8),
    "polling": lambda rate: wq.polling(2, rate, ONE, ONE),
    "fastest_free": lambda rate: wq.fastest_free(rate, [1.0, 2.0]),
    "fastest_free_bounds": lambda rate: wq.fastest_free_bounds(rate, [1.0, 2.0]),
}


def sentence(call, kind=UserError):
    """The message of the refusal: one sentence, no page."""
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 400
    return text


@pytest.mark.parametrize("name", RATES)
def test_no_arrivals_means_something_and_is_said(name):
    text = sentence(lambda: RATES[name](0.0), InputError)
    assert "nobody ever arrives" in text
    assert "arrival_rate_per_s" in text


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf, -math.inf, "3", None, [0.1, 0.2], True])
def test_rates_that_are_none(name, rate):
    assert "arrival_rate_per_s" in sentence(lambda: RATES[name](rate), InputError)


@pytest.mark.parametrize("name", [name for name in RATES if name != "mmck"])
def test_a_load_of_one_or_more_has_no_steady_state(name):
    for rate in (20.0, 1e300):
        text = sentence(lambda rate=rate: RATES[name](rate), Unstable)
        assert "no steady state" in text


@pytest.mark.parametrize(
    "call",
    [
        lambda: wq.mmc(3.0, 1.0, 3),
        lambda: wq.mdc(3.0, 1.0, 3),
        lambda: wq.md1(1.0, 1.0),
        lambda: wq.mg1(1.0, ONE),
        lambda: wq.gimc(3.0, 2.0, 1.0, 3),
        lambda: wq.fastest_free(3.0, [1.0, 2.0]),
        lambda: wq.processor_sharing(1.0, 1.0),
    ],
)
def test_a_load_of_exactly_one(call):
    text = sentence(call, Unstable)
    assert "load of 1," in text


def test_how_many_servers_would_do_is_said():
    assert "at least 8 servers" in sentence(lambda: wq.mmc(7.5, 1.0, 3), Unstable)
    assert wq.mmc(7.5, 1.0, 8).mean_wait_s > 0


def test_one_limited_polling_is_unstable_before_its_load_is_one():
    assert wq.polling(4, 0.2, ONE, Deterministic(mean_s=0.1), "gated").utilisation == pytest.approx(0.8)
    text = sentence(lambda: wq.polling(4, 0.24, ONE, Deterministic(mean_s=0.1), "one-limited"), Unstable)
    assert "serve more a visit" in text


@pytest.mark.parametrize("servers", [0, -1, 2.5, math.nan, "two"])
def test_servers_that_are_none(servers):
    for call in (
        lambda: wq.mmc(1.0, 1.0, servers),
        lambda: wq.mdc(1.0, 1.0, servers),
        lambda: wq.gimc(1.0, 1.0, 1.0, servers),
        lambda: wq.mmck(1.0, 1.0, servers, 9),
        lambda: wq.ggc(1.0, 1.0, 1.0, 1.0, servers),
        lambda: wq.first_come_path(Customers([0.0], [1.0]), servers),
    ):
        assert "servers" in sentence(call, InputError)
    if servers == 0:
        assert "nobody would ever be served" in sentence(lambda: wq.mmc(1.0, 1.0, 0))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: wq.mmc(1.0, 0.0, 3), "service_rate_per_s"),
        (lambda: wq.mmc(1.0, -2.0, 3), "service_rate_per_s"),
        (lambda: wq.md1(1.0, math.nan), "service_s"),
        (lambda: wq.mmck(1.0, 1.0, 3, 2), "places"),
        (lambda: wq.mmck(1.0, 1.0, 3, 10**12), "at most 10,000,000"),
        (lambda: wq.batched_service(1.0, 0.1, 0.1, 10.0, 10**12), "max_batch"),
        (lambda: wq.fastest_free_bounds(1.0, [2.0], [1e12]), "slots"),
        (lambda: wq.active_models(0.1, 1.0, 10**12), "models"),
        (lambda: wq.md1(0.5, 1.0).wait_exceeds(1e12), "shorter wait"),
        (lambda: wq.md1(1 - 1e-12, 1.0).wait_quantile_s(0.99), "smaller share"),
        (lambda: wq.gimc(1.0, -0.1, 2.0, 1), "arrival_scv"),
        (lambda: wq.ggc(1.0, 1.0, 2.0, math.inf), "service_scv"),
        (lambda: wq.ggc(1.0, 1.0, 1.0, 1.0, 2, "kingman"), "one server only"),
        (lambda: wq.ggc(1.0, 4.0, 1.0, 1.0, 2, "kimura"), "no burstier than Poisson"),
        (lambda: wq.ggc(1.0, 0.5, 1.0, 1.0, 2, "cosmetatos"), "Poisson arrivals"),
        (lambda: wq.ggc(1.0, 1.0, 1.0, 1.0, 2, "alen-cuneen"), "allen-cunneen"),
        (lambda: wq.known_errors("kimora"), "kimura"),
        (lambda: wq.polling(0, 0.1, ONE, ONE), "queues"),
        (lambda: wq.polling(2, 0.1, ONE, ONE, "gate"), "gated"),
        (lambda: wq.batched_service(1.0, 0.0, 0.0, 10.0, 4), "step"),
        (lambda: wq.batched_service(1.0, 0.1, 0.0, 10.0, 4, 3), "places"),
        (lambda: wq.batched_service(1.0, 0.1, -0.1, 10.0, 4), "step_per_job_s"),
        (lambda: wq.batched_path(Customers([0.0], [1.0]), 0.0, 0.0, 4), "step_fixed_s"),
        (lambda: wq.batched_path(Customers([0.0], [1.0]), 1.0, 0.0, 4, 3), "places"),
        (lambda: wq.fastest_free(1.0, []), "service_rates_per_s"),
        (lambda: wq.fastest_free(1.0, [2.0, 0.0]), "row 2"),
        (lambda: wq.fastest_free(1.0, [2.0, 1.0], [1]), "slots"),
        (lambda: wq.fastest_free(1.0, [2.0, 1.0], [1, 1.5]), "slots"),
        (lambda: wq.fastest_free(1.0, [1.0, 2.0, 3.0], [99, 99, 99]), "1,000,000 states"),
        (lambda: wq.fastest_free_path(Customers([0.0], [1.0]), [1.0], [0]), "slots"),
        (lambda: wq.active_models([0.0, 0.0], 1.0), "none is ever active"),
        (lambda: wq.active_models([0.1, 0.2], 1.0, 3), "3 models"),
        (lambda: wq.active_models([0.1, math.nan], 1.0), "row 2"),
        (lambda: wq.active_models(0.1, 0.0), "active_s"),
        (lambda: wq.processor_sharing(0.5, 1.0).mean_response_of_s(-1.0), "service_s"),
        (lambda: wq.mmc(1.0, 1.0, 3).wait_quantile_s(1.0), "part"),
        (lambda: wq.mmc(1.0, 1.0, 3).wait_exceeds(-1.0), "wait_s"),
        (lambda: wq.mmc(1.0, 1.0, 3).in_system_at_least(-1), "customers"),
        (lambda: wq.md1(0.5, 1.0).wait_quantile_s(1 - 1e-14), "1e-12"),
        (lambda: wq.curve(wq.mm1, arrival_rate_per_s=[0.1, 0.2], service_rate_per_s=[1.0]), "equally long"),
        (lambda: wq.curve(wq.mdc, arrival_rate_per_s=1.0, service_s=1.0, servers=2, wait_quantiles=(0.5,)), "M/D/2"),
        (lambda: wq.first_come_path(Customers([1.0, 0.5], [1.0, 1.0])), "row 2"),
        (lambda: wq.first_come_path(Customers([0.0, 0.5], [1.0])), "service_s"),
        (lambda: wq.first_come_path(Customers([0.0, 0.5], [1.0, -1.0])), "row 2"),
        (lambda: wq.first_come_path(Customers([], [])), "arrival_s"),
        (lambda: wq.lindley_waits([0.0, 1.0], [1.0]), "service_s"),
        (lambda: wq.rotation_path(Customers([0.0], [1.0]), [0.5], [1.0]), "queue"),
        (lambda: wq.rotation_path(Customers([0.0], [1.0]), [0, 1], [1.0]), "queue"),
        (lambda: wq.rotation_path(Customers([0.0], [1.0]), [-1], [1.0]), "queue"),
        (lambda: wq.rotation_path(Customers([0.0], [1.0]), [0], []), "switch_s"),
        (lambda: wq.rotation_path(Customers([0.0], [1.0]), [0], [1.0], "gatd"), "gated"),
        (lambda: wq.draw_customers(ONE, ONE, 0, 1), "customers"),
        (lambda: wq.draw_customers(ONE, wq.TwoMoments(mean_s=1.0, scv=1.0), 10, 1), "Lognormal"),
        (lambda: wq.first_come_path(Customers([0.0], [1.0])).mean_in_system(1.0, 1.0), "to_s"),
        (lambda: Gamma(mean_s=0.0, scv=1.0), "mean_s"),
        (lambda: Gamma(mean_s=1.0), "scv"),
        (lambda: Gamma(mean=1.0, scv=1.0), "mean"),
        (lambda: wq.Hyperexponential(mean_s=1.0, scv=0.5), "scv"),
        (lambda: wq.Uniform(low_s=2.0, high_s=1.0), "swap"),
        (lambda: wq.Measured(values_s=[0.0, 0.0]), "values_s"),
        (lambda: wq.Measured(values_s=[1.0, -1.0]), "row 2"),
        (lambda: student_interval([1.0]), "two repetitions"),
        (lambda: student_interval([1.0, math.nan]), "row 2"),
        (lambda: student_interval([1.0, 2.0], 1.0), "confidence"),
        (lambda: batch_means([1.0, 2.0], 30), "longer run"),
        (lambda: mser([1.0, 2.0]), "at least 10"),
        (lambda: drop_share(100, 1.0), "part"),
        (lambda: replicate(lambda seed: 1.0, 0, 1), "replications"),
        (lambda: coverage([], 1.0), "confidence"),
        (lambda: coverage([1.0], 1.0), "list of intervals"),
        (lambda: coverage([student_interval([1.0, 2.0])], math.nan), "true_value"),
        (lambda: replicate(1.0, 3, 1), "function of a seed"),
        (lambda: replicate(lambda seed: 1.0, 3, -1), "seed"),
        (lambda: replicate(lambda seed: 1.0, 10**12, 1), "at most 1,000,000"),
        (lambda: wq.mmc(10**400, 1.0, 3), "arrival_rate_per_s"),
        (lambda: wq.mmc(1.0, 1e308, 3), "more than a float holds"),
        (lambda: wq.lindley_waits([10**400], [1.0]), "gap_s"),
        (lambda: wq.lindley_waits(["1"], [1.0]), "no number"),
        (lambda: wq.lindley_waits([True], [1.0]), "no number"),
        (lambda: wq.lindley_waits(np.array([1j]), [1.0]), "no number"),
        (lambda: wq.mg1(0.5, 1.0), "Exponential(mean_s=1.0)"),
        (lambda: wq.mg1(0.5, None), "give a distribution"),
        (lambda: wq.polling(2, 0.1, ONE, 0.1), "switchover"),
        (lambda: wq.polling(2, 0.1, ONE, ONE, []), "polling discipline"),
        (lambda: wq.draw_customers(ONE, "exponential", 5, 1), "service"),
        (lambda: wq.draw_customers(ONE, ONE, 10**12, 1), "at most 100,000,000"),
        (lambda: wq.ggc(1.0, 1.0, 2.0, 1.0, 1, {}), "allen-cunneen"),
        (lambda: wq.known_errors("kimura", ("x",)), "loads"),
        (lambda: wq.known_errors("kimura", (0.5,), (1.5,)), "servers"),
        (lambda: wq.first_come_path(Customers([0.0], [1.0])).mean_in_system(0.0, math.inf), "to_s"),
        (lambda: wq.active_path(Customers([0.0], [1.0]), [0]).mean(math.nan, 1.0), "from_s"),
    ],
)
def test_one_sentence_names_what_is_wrong(call, word):
    assert word in sentence(call)


def test_extreme_but_sensible_questions_are_answered_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wq.mmc(1e-300, 1.0, 3).mean_wait_s == 0.0
        assert wq.mmc(1.0, 1.0, 10_000).wait_probability == 0.0
        assert wq.mmc(1.0, 1.0, 10_000).ln_empty_probability == pytest.approx(-1.0)
        assert wq.mmc(9999.0, 1.0, 10_000).wait_probability == pytest.approx(1.0, abs=0.02)
        assert wq.mm1(1 - 1e-12, 1.0).mean_wait_s == pytest.approx(1e12, rel=1e-3)
        assert wq.mdc(1.0, 1.0, 1000).mean_wait_s == 0.0
        assert wq.mdc(9999.9, 1.0, 10_000).mean_wait_s == pytest.approx(
            wq.mmc(9999.9, 1.0, 10_000).mean_wait_s / 2, rel=0.01
        )
        assert wq.mmck(1e6, 1.0, 1, 50_000).blocking_probability == pytest.approx(1 - 1e-6)
        assert wq.gimc(0.8, 1e6, 1.0, 1).mean_wait_s > 1e5
        assert 0 <= wq.gimc(9999.0, 4.0, 1.0, 10_000).wait_probability <= 1
        assert wq.ggc(0.5, 0.0, 1.0, 0.0, 1, "kimura").mean_wait_s == 0.0
        assert wq.ggc(0.5, 0.0, 1.0, 0.0, 1, "kraemer-langenbach-belz").wait_quantile_s(0.99) == 0.0
        assert wq.fastest_free_bounds(5e4, [1.0, 0.5], [60_000, 60_000]).response_lower_s == pytest.approx(1.0)
        assert wq.active_models([0.0, 0.1], 1.0).mean_active == pytest.approx(-math.expm1(-0.1))
        assert wq.active_models(1e-9, 1e-9, 10).mean_active == pytest.approx(1e-17, rel=1e-9)
        assert wq.batched_service(1e-9, 0.02, 0.0005, 100, 10_000).mean_wait_s == 0.0
        assert wq.md1(0.9999, 1.0).wait_quantile_s(0.99) == pytest.approx(math.log(100) / 2e-4, rel=1e-3)


def test_a_curve_past_the_edge_of_stability_says_so_and_goes_on():
    table = wq.curve(
        wq.mmc,
        arrival_rate_per_s=np.array([1.0, 3.0, 2.0]),
        service_rate_per_s=1.0,
        servers=[3, 3, 3],
        wait_quantiles=(0.5, 0.99),
    )
    assert table["mean_wait_s"].is_null().to_list() == [False, True, False]
    assert "no steady state" in table["unstable"][1]
    assert table["wait_p99_s"][2] == wq.mmc(2.0, 1.0, 3).wait_quantile_s(0.99)
    assert set(table["kind"].drop_nulls()) == {"exact"}
    with pytest.raises(InputError):
        wq.curve(wq.mmc, arrival_rate_per_s=[1.0, -1.0], service_rate_per_s=1.0, servers=3)


def test_answers_name_the_arrivals_they_are_for():
    poisson = wq.mmc(2.0, 1.0, 3)
    assert poisson.label == "M/M/3, exact for Poisson arrivals and exponential service"
    assert "computed for Poisson arrivals, drawn on bursty gamma" in poisson.label_on("bursty gamma")
    kinds = {call(0.3).kind for call in RATES.values()}
    assert kinds == {"exact", "approximation", "bound"}
    for call in RATES.values():
        answer = call(0.3)
        assert answer.arrivals
        assert answer.service
        assert answer.source
        assert bool(answer.known_error) == (answer.kind == "approximation")


ARRIVED = Customers([0.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: wq.mmc(1.0, 1.0, 10**15),
        lambda: wq.mdc(1.0, 1.0, 10**15),
        lambda: wq.gimc(1.0, 4.0, 1.0, 10**15),
        lambda: wq.ggc(1.0, 1.0, 1.0, 1.0, 10**15),
        lambda: wq.polling(10**15, 1e-17, ONE, ONE),
        lambda: wq.active_models(0.1, 1.0, 10**7),
        lambda: wq.first_come_path(ARRIVED, 10**12),
        lambda: wq.fastest_free_path(ARRIVED, [1.0], [1e12]),
        lambda: wq.batched_path(ARRIVED, 0.1, 0.1, 10**12),
        lambda: wq.batched_path(ARRIVED, 0.1, 0.1, 2, 1e308),
        lambda: wq.rotation_path(ARRIVED, [0, 10**15], [0.1]),
        lambda: simulated.simulate_first_come(ARRIVED, 10**12),
        lambda: simulated.simulate_rotation(ARRIVED, [0, 10**15], [0.1]),
        lambda: simulated.simulate_fastest_free(ARRIVED, [1.0], [1e12]),
    ],
)
def test_counts_that_would_hang_or_fill_memory_are_refused(call):
    assert "at most" in sentence(call, InputError)


@pytest.mark.parametrize("slots", [[1] * 15, [7] * 5])
def test_chains_of_many_classes_are_refused_before_they_hang(slots):
    """Fewer than 50,000 states, and yet minutes of elimination."""
    rates = [1.0 + 0.1 * place for place in range(len(slots))]
    assert "states wide" in sentence(lambda: wq.fastest_free(1.0, rates, slots))


@pytest.mark.parametrize("customers", [None, [], [1, 2, 3], "x", Customers("a", "b"), Customers([], [])])
@pytest.mark.parametrize(
    "path",
    [
        wq.first_come_path,
        wq.processor_sharing_path,
        lambda customers: wq.active_path(customers, [0]),
        simulated.simulate_first_come,
        simulated.simulate_processor_sharing,
        lambda customers: simulated.simulate_active(customers, [0]),
    ],
)
def test_customers_that_are_none(path, customers):
    sentence(lambda: path(customers), InputError)


@pytest.mark.parametrize("owner", [[0], [0, 1, 2], ["a", "b"], 0])
def test_owners_are_checked_by_both_twins(owner):
    for path in (wq.active_path, simulated.simulate_active):
        assert "model" in sentence(lambda path=path: path(ARRIVED, owner), InputError)
