"""What no request can undercut: no run of any system ever does, one alone just reaches it, and plans answer by it."""

import time
from collections import Counter

import numpy as np
import polars as pl
import pytest
from operating_cases import APART, SCALING, quarters, table

import workbench as wb
from workbench.operating.least_times import bound_of, least_times
from workbench.operating.simulating import resolved, run_of
from workbench.serving import Engine, Failure, StepForm, Update

ONE_TP = [wb.deployment()]
SYSTEMS = ("fixed", "distserve-full", *SCALING, *APART)


def random_run(seed):
    """Requests in bursts, little room for KV, prompts that begin alike, instances that fail, new weights."""
    rng = np.random.default_rng(seed)
    name = SYSTEMS[seed % len(SYSTEMS)]
    row = lambda: tuple(float(rng.choice([0, 0.3, 1])) * size for size in (0.05, 2e-3, 1e-5, 1e-3, 0.02))  # noqa: E731
    compute, memory = row(), row()
    step = StepForm(compute=(0.01, *compute[1:]), memory=memory)
    chunk, cache = int(rng.choice([16, 64, 512])), int(rng.choice([0, 64]))
    engine = Engine(
        slots=int(rng.integers(1, 6)), chunk=chunk, budget=chunk + int(rng.integers(0, 32)), block_tokens=4,
        reserve=bool(rng.integers(2)), apart=bool(rng.integers(2)), prefix_cache_tokens=cache,
        prefix_block_tokens=8 if cache else None,
    )  # fmt: skip
    count = int(rng.integers(10, 40))
    arrival_s = np.sort(np.round(rng.uniform(0, 6, count), 1))
    rows = [(float(t), int(rng.integers(1, 120)), int(rng.integers(0, 12))) for t in arrival_s]
    trace = table(*rows)
    if cache:
        hashes = [list(range(rows[k][1] // 8)) for k in range(count)]
        trace = trace.with_columns(prefix_hashes=pl.Series(hashes, dtype=pl.List(pl.Int64)))
    apart, scales = name in (*APART, "distserve-full"), name not in ("fixed", "distserve-full")
    happens = {}
    if rng.random() < 0.5:
        happens["failures"] = [Failure(time_s=float(rng.uniform(0.1, 5)), instance=0, back_s=7.0)]
    if scales and rng.random() < 0.3:
        happens["updates"] = [Update(time_s=3.0, model="default")]
    bounds = {"prefill": (1, 3), "decode": (1, 2)} if apart else {}
    changes = {"tick_s": 0.25} if scales else {}
    changes |= {"live": "always"} if name == "blitzscale" else {}
    system = wb.system(name, engine=engine, **changes)
    asked = resolved(
        system, cluster=quarters(3, 2), models="llama-3-8b", trace=trace, step=step,
        deployment=wb.deployment(**bounds), kv_tokens=int(rng.choice([140, 400])), **happens,
    )  # fmt: skip
    return asked, run_of(asked), rng


def test_no_request_of_any_run_undercuts_it():
    """And a promise between the times that came up is never kept for more than the bound says."""
    seen = Counter()
    for seed in range(240):
        asked, run, rng = random_run(seed)
        ttft_s, tbt_s = least_times(asked)
        made = run.requests
        got_s = (made["first_token_s"] - made["arrival_s"]).to_numpy()
        gaps = np.maximum(made["output_tokens"].to_numpy() - 1, 1)
        further_s = (made["finish_s"] - made["first_token_s"]).to_numpy() / gaps
        told, done = ~np.isnan(got_s), (made["status"] == "done").to_numpy() & ~np.isnan(got_s)
        assert (got_s[told] >= ttft_s[told] - 1e-9).all(), seed
        assert (further_s[done] >= tbt_s[done] - 1e-9).all(), seed
        seen["tight first"] += (got_s[told] < ttft_s[told] * 1.001).sum()
        seen["tight further"] += (further_s[done] < tbt_s[done] * 1.001).sum()
        seen["evicted"] += made["evictions"].sum()
        seen["moved"] += made["moves"].sum()
        seen["restarted"] += made["restarts"].sum()
        seen["cached"] += (made["cached_tokens"] > 0).sum()
        seen["helped"] += run.served.assists.height
        slo = wb.slo(
            ttft_s=float(np.quantile(ttft_s, rng.random())) * float(rng.choice([1, 1.5])),
            tbt_s=float(np.quantile(tbt_s, rng.random())) * float(rng.choice([1, 1.5])) + 1e-3,
        )
        share = run.metrics(slo)["attainment"]
        bound = bound_of(asked, slo, 0.9)
        assert np.isnan(share) or share <= bound.share, seed
        seen["bounds that bind"] += bound.share < 0.9
    assert not {name: count for name, count in seen.items() if count < 8}, seen


@pytest.mark.parametrize("name", ["fixed", "distserve-full"])
def test_a_request_alone_takes_just_that(name):
    """Two chunks of 60 and 40 prompt tokens; then a token that reads the KV of 100. By hand, the first row counts for
    prompts: 2 x (0.01 + 0.001) + 100 x 1e-3 + 1e4 x 1e-6; the second one for the token: 0.02 + 100 x 1e-4 + 0.002."""
    step = StepForm(compute=(0.01, 1e-3, 1e-6, 0.0, 0.001), memory=(0.02, 0.0, 0.0, 1e-4, 0.002))
    asked = resolved(
        wb.system(name, engine=Engine(chunk=60, budget=60)), cluster=quarters(1, 2, nic_bytes_per_s=1e20), step=step,
        models="llama-3-8b", trace=table((0.0, 100, 2)), kv_tokens=1024,
        deployment=wb.deployment(prefill=(1, 1), decode=(1, 1)),
    )  # fmt: skip
    (ttft_s,), (tbt_s,) = least_times(asked)
    assert (ttft_s, tbt_s) == (pytest.approx(0.132), pytest.approx(0.032))
    (row,) = run_of(asked).requests.to_dicts()
    assert row["first_token_s"] == pytest.approx(ttft_s)
    assert row["finish_s"] - row["first_token_s"] == pytest.approx(tbt_s, rel=1e-6)


def test_a_promise_that_nobody_can_keep_is_answered_at_once():
    """Half the prompts take 0.1 s at least, the others 1 s, and a further token 0.01 s. Within 0.101 s 50 % can be,
    60 % not; then nothing is run, and the plan says what 60 % would need."""
    step = StepForm(compute=(0.0, 1e-3, 0.0, 0.0, 0.0), memory=(0.01, 0.0, 0.0, 0.0, 0.0))
    trace = table(*[(5.0 * k, 1000 if k % 2 else 100, 3) for k in range(40)])
    given = {"cluster": quarters(2, 8), "models": "llama-3-8b", "step": step, "kv_tokens": 2**14}
    for name in ("fixed", "distserve-full", "allcache"):
        given |= {"systems": [name], "deployments": ONE_TP}
        some = wb.plan(trace, slo=wb.slo(ttft_s=0.101, tbt_s=0.02), attainment=0.5, **given)
        assert some.table["accelerators"][0] is not None
        for promise in (wb.slo(ttft_s=0.101, tbt_s=0.02), wb.slo(ttft_s=2.0, tbt_s=0.009)):
            begun = time.perf_counter()
            none = wb.plan(trace, slo=promise, attainment=0.6, **given)
            assert time.perf_counter() - begun < 1.0
            row = none.table.row(0, named=True)
            assert (row["instances"], row["binds"], none.tried.height) == (None, "compute", 0)
            assert row["attainment"] == (0.5 if float(promise.ttft_s) == 0.101 else 0.0)
            assert "60% need a TTFT of 1 s and a TBT of 0.01 s at least" in none.sentence
            assert none.sentence in none._repr_html_()


def test_what_a_share_needs_is_told_by_as_many_requests_as_make_it():
    """Prompts of 1 to 100 tokens, a millisecond each: 55 of 100 take 55 ms, although 0.55 x 100 is a bit above 55."""
    step = StepForm(compute=(1e-9, 1e-3, 0.0, 0.0, 0.0))
    trace = table(*((float(k), k + 1, 2) for k in range(100)))
    asked = resolved("fixed", cluster=quarters(1, 1), models="llama-3-8b", trace=trace, step=step, kv_tokens=1024)
    for share in (0.07, 0.14, 0.28, 0.55, 0.56, 1.0):
        assert bound_of(asked, wb.slo(ttft_s=1, tbt_s=1), share).ttft_s == pytest.approx(share / 10, abs=1e-6)


def test_other_definitions_have_no_bound():
    asked, _, _ = random_run(0)
    assert bound_of(asked, wb.slo(ttft_s=1e-9, tbt_s=1e-9, definition="token"), 0.9).share == 1.0
    assert bound_of(asked, wb.slo(ttft_s=1e-9, tbt_s=1e-9), 0.9).share == 0.0
