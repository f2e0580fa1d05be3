"""The largest load: analytic on M/M/c, exact on evenly spaced requests, refused where there is none."""

import math

import numpy as np
import pytest
from operating_cases import SERVED, SERVER, TICK_S, gpus, table
from scipy.optimize import brentq

import workbench as wb
from workbench.errors import InputError, UserError

SERVERS, WITHIN_S, SHARE = 3, 4.0, 0.9
PROMISE = wb.slo(ttft_s=WITHIN_S, tbt_s=1)


def late(rate: float) -> float:
    """P(wait + service > t) of M/M/3 with services of 1 s: Erlang's C, and two exponentials one after the other."""
    offered = rate
    terms = [offered**k / math.factorial(k) for k in range(SERVERS)]
    full = offered**SERVERS / math.factorial(SERVERS) * SERVERS / (SERVERS - offered)
    waits = full / (sum(terms) + full)
    drain = SERVERS - rate
    both = (drain * math.exp(-WITHIN_S) - math.exp(-drain * WITHIN_S)) / (drain - 1)
    return (1 - waits) * math.exp(-WITHIN_S) + waits * both


EXACT = brentq(lambda rate: late(rate) - (1 - SHARE), 2.05, 2.95)


def poisson(seed: int, n: int = 20_000):
    rng = np.random.default_rng(seed)
    arrival_s = np.cumsum(rng.exponential(1.0, n))
    prompt = np.maximum(1, np.rint(rng.exponential(1.0, n) / TICK_S)).astype(int)
    return table(*zip(arrival_s.tolist(), prompt.tolist(), [1] * n, strict=True))


def test_the_analytic_load_is_one_of_three_servers():
    assert 1 < EXACT < SERVERS
    assert late(EXACT) == pytest.approx(0.1)


def test_replications_hold_the_analytic_load():
    found = wb.capacity(
        SERVER, cluster=gpus(SERVERS), trace=poisson, slo=PROMISE, attainment=SHARE, warm_up=0.1, **SERVED
    )
    assert found.low < EXACT < found.high
    assert (found.high - found.low) / EXACT < 0.05
    assert "Student over 10 traces" in found.sentence
    assert found.sentence in found._repr_html_()


def test_one_trace_holds_the_analytic_load():
    found = wb.capacity(
        SERVER, cluster=gpus(SERVERS), trace=poisson(3, 40_000), slo=PROMISE, attainment=SHARE, warm_up=0.05, **SERVED
    )
    assert found.low < EXACT < found.high
    assert found.low <= found.rate_per_s <= found.high
    assert (found.high - found.low) / EXACT < 0.15


def test_evenly_spaced_requests_are_borne_up_to_the_service_rate():
    """Services of 0.5 s at even times: one server keeps TTFT 0.6 s for all below 2 a second, and hardly any above."""
    even = table(*((float(k), 500_000, 1) for k in range(400)))
    found = wb.capacity(SERVER, cluster=gpus(1), trace=even, slo=wb.slo(ttft_s=0.6, tbt_s=1), **SERVED)
    assert found.rate_per_s == pytest.approx(2.0, rel=0.02)
    rates = found.tried.sort("rate_per_s")
    assert rates.filter(rates["rate_per_s"] < 1.99)["attainment"].min() == 1.0
    assert rates.filter(rates["rate_per_s"] > 2.1)["attainment"].max() < 0.2


def test_the_load_of_a_system_that_scales_and_what_it_takes():
    """Services of 0.5 s at even times, starts that take no time, a tick of 0.05 s: two instances bear 4 a second."""
    system = SERVER.replaced(
        name="growing", autoscaler="concurrency:requests=1", tick_s=0.05, least=0, provisioning="least", keep_s=0.0
    )
    even = table(*((float(k), 500_000, 1) for k in range(400)))
    found = wb.capacity(system, cluster=gpus(2), trace=even, slo=wb.slo(ttft_s=0.7, tbt_s=1), **SERVED)
    assert found.rate_per_s == pytest.approx(4.0, rel=0.05)
    low = found.tried.filter(found.tried["rate_per_s"] == 1.0).row(0, named=True)
    assert low["peak_gpus"] == 1
    # Of each second an instance is held from the tick that sees the request until the one that sees it idle.
    assert 0.5 * 400 <= low["gpu_allocated_s"] <= 0.65 * 400
    assert "it takes up to 2 GPUs at a time and 0.5" in found.sentence
    fixed = wb.capacity(SERVER, cluster=gpus(2), trace=even, slo=wb.slo(ttft_s=0.7, tbt_s=1), **SERVED)
    assert "GPU" not in fixed.sentence
    assert fixed.tried["peak_gpus"].to_list() == [2.0] * fixed.tried.height


def test_an_answer_says_where_attainment_does_not_fall_with_the_load():
    """Starts take 9 s, and idle instances are kept for 3 s: requests that are 10 s apart each wait for a start, those
    that are closer find the instance of the first. That one waits for 9.5 s, the next ones for as much less as they
    are further apart than a service of 0.5 s: the 80th, the last that may be late, for 4.5 s."""
    system = SERVER.replaced(
        name="slow to start", autoscaler="concurrency:requests=1", tick_s=0.5, least=0, provisioning="least",
        keep_s=3.0, path="fixed", load_s=9.0,
    )  # fmt: skip
    even = table(*((10.0 * k, 500_000, 1) for k in range(400)))
    found = wb.capacity(system, cluster=gpus(1), trace=even, slo=wb.slo(ttft_s=5, tbt_s=1), attainment=0.8, **SERVED)
    assert found.rate_per_s == pytest.approx(1 / (0.5 + 5 / 80), rel=0.01)
    assert "attainment does not fall evenly with the load" in found.sentence
    slow = found.tried.filter(found.tried["rate_per_s"] <= 0.1)["attainment"]
    assert len(slow) > 1
    assert slow.max() < 0.8


def test_the_same_seed_gives_the_same_answer():
    given = {"cluster": gpus(2), "trace": poisson(1, 400), "slo": PROMISE, "policies": {"dispatch": "random"}}
    one, other = (wb.capacity(SERVER, seed=4, **given, **SERVED) for _ in range(2))
    assert one.tried.equals(other.tried)


def test_progress_tells_each_load():
    told = []
    wb.capacity(SERVER, cluster=gpus(1), trace=poisson(1, 100), slo=PROMISE, progress=told.append, **SERVED)
    assert told
    assert all(text.startswith("load: ") for text in told)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"slo": wb.slo(ttft_s=1e-9, tbt_s=1)}, "even where none meets another, less than the 90%"),
        ({"slo": wb.slo(ttft_s=1e9, tbt_s=1)}, "keeps the promise even when all 100 requests arrive at once"),
        ({"trace": poisson(1, 39)}, "too few for an interval; give at least 40"),
        ({"trace": table(*[(0.0, 10, 1)] * 50)}, "arrive at once, so it has no load"),
        ({"attainment": 1.0}, "field 'attainment': is 1.0"),
        ({"warm_up": 1.0}, "field 'warm_up': is 1.0"),
        ({"precision": 0}, "precision"),
        ({"system": "blendserve"}, "not built yet"),
        ({"trace": poisson, "replications": 1}, "gives no interval"),
        ({"backend": "simpy"}, "no setting of such runs named 'backend'"),
    ],
)
def test_what_has_no_answer_is_refused(options, words):
    given = {"system": SERVER, "cluster": gpus(1), "trace": poisson(1, 100), "slo": PROMISE} | SERVED | options
    with pytest.raises((UserError, InputError), match=words):
        wb.capacity(given.pop("system"), **given)


def test_what_runs_need_is_asked_for():
    with pytest.raises(InputError, match=r"field 'cluster': is missing; give it as for wb\.simulate"):
        wb.capacity(SERVER, trace=poisson(1, 100), slo=PROMISE, models="llama-3-8b")
