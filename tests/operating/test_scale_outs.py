"""Scale-outs in tables and numbers, by hand and against slow twins: needed, moved, harmed, bandwidth got."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operating_cases import SCALING, SECOND, WEIGHTS, quarters, table

import workbench as wb
from workbench.operating.harm import gaps_around_scale_outs
from workbench.operating.needing import needed_s
from workbench.serving import StepForm
from workbench.serving.model.lowered import REJECTED
from workbench.serving.model.scaled import UP

RULE = {"autoscaler": "concurrency:requests=1", "tick_s": 1.0, "least": 1, "keep_s": np.inf}
BUSY = ("serverlessllm@blitzscale", "ideal", "nccl")


def served(*rows, slo=None, system="allcache", **options):
    """Steps of a second with 2,048 prompt tokens at most: 2,048 prompt tokens a second and instance."""
    given = {"models": "llama-3-8b", "step": SECOND, "kv_tokens": 2**20, "trace": table(*rows)} | options
    return wb.simulate(wb.system(system, **RULE), cluster=quarters(), slo=slo, **given)


def test_a_load_is_needed_from_when_the_backlog_cannot_clear_in_time():
    """One instance is up: 4,096 prompt tokens clear within 2 s, 6,144 do not. That is so from 0.5 s, when the second
    and third prompt come, until the first one's token at 1 s; the tick of 1 s decides to start two, in memory 1 s."""
    run = served((0.0, 2048, 1), (0.5, 2048, 1), (0.5, 2048, 1), slo=wb.slo(ttft_s=2.0, tbt_s=1))
    assert run.scaleouts.select("needed_s", "detected_s", "alone_s").rows() == [(0.5, 1.0, 2.0)] * 2
    assert run.scaleouts_by(None)["needed_s"].is_nan().all()
    assert run.scaleouts_by(wb.slo(ttft_s=3.0, tbt_s=1))["needed_s"].is_nan().all()  # 6,144 tokens clear in 3 s
    assert run.scaleouts_by(wb.slo(ttft_s=0.5, tbt_s=1))["needed_s"].to_list() == [0.0, 0.0]
    assert served((0.0, 2048, 1), (0.5, 2048, 1), (0.5, 2048, 1)).scaleouts["needed_s"].is_nan().all()


def test_a_load_that_was_decided_before_it_was_needed_is_needed_later_or_never():
    """Two short prompts make the tick of 1 s start one more, up at 2 s. At 1.5 s a prompt of five steps comes: short
    from then on, with 2 s promised; where it comes at 2.5 s, the new instance was there before it was needed."""
    early = [(0.0, 8, 9), (0.2, 8, 9)]
    for long_s, needed in ((1.5, 1.5), (2.5, np.nan)):
        run = served(*early, (long_s, 10_240, 1), slo=wb.slo(ttft_s=2.0, tbt_s=1))
        assert run.scaleouts.select("detected_s", "alone_s").row(0) == (1.0, 2.0)
        np.testing.assert_equal(run.scaleouts["needed_s"][0], needed)


def test_where_nobody_is_up_one_request_is_a_need():
    run = served((0.0, 8, 1), (0.25, 0, 0), slo=wb.slo(ttft_s=9.0, tbt_s=1), system="ideal", deployment=least(0))
    assert run.scaleouts["needed_s"].to_list() == [0.0, 0.0]


def least(count):
    return wb.deployment(prefill=(count, 4), colocated=True)


def busy(system, seed, backend="compiled", **options):
    """Two models, prompts of half a second on average, in bursts."""
    rng = np.random.default_rng(seed)
    arrival_s = np.sort(np.repeat(rng.uniform(0, 40, 12), 5) + rng.uniform(0, 1.5, 60))
    sizes = rng.integers([1, 0], [900, 9], (60, 2))
    rows = [(t, *pair) for t, pair in zip(arrival_s.tolist(), sizes.tolist(), strict=True)]
    trace = table(*rows, model=pl.Series(rng.choice(["a", "b"], 60).tolist()))
    step = StepForm(compute=(0.05, 1e-3, 0.0, 0.0, 0.01))
    choices = {"limit": int(rng.choice([1, 2])), "tick_s": float(rng.choice([0.5, 1.0])), "least": int(rng.integers(2))}
    given = {"models": "llama-3-8b", "step": step, "kv_tokens": 4096, "slo": wb.slo(ttft_s=1.0, tbt_s=0.2)} | options
    return wb.simulate(
        wb.system(system, **choices), cluster=quarters(), trace=trace, seed=seed, backend=backend, **given
    )


def slow_needed(run, ttft_s):
    """By the definition, instant by instant: short is the state after all that happens at one instant."""
    lowered, out = run.served.lowered, run.served.outcome
    rates = [2048 / (0.05 + 2.048 + 0.01)] * 2  # a full step of the engine
    req, scaling = lowered.requests, lowered.scaling
    found = []
    for start_s, end_s, row, *_ in out.loads.tolist():
        m = int(lowered.instances.model[int(row)])
        first = np.fmin(out.first_token_s, out.finish_s)
        instants = np.unique(np.concatenate([req.arrival_s, first[~np.isnan(first)], out.states[:, 0], [0.0]]))
        short = []
        for t in instants:
            waiting = (req.model == m) & (req.arrival_s <= t) & (out.status != REJECTED) & ~(first <= t)
            state = scaling.start_state.copy()
            for time_s, j, new in out.states.tolist():
                if time_s <= t:
                    state[int(j)] = int(new)
            up = ((state == UP) & (lowered.instances.model == m)).sum()
            short.append(req.prompt[waiting].sum() > ttft_s * rates[m] * up)
        begun, answer = None, np.nan
        for k, t in enumerate(instants):
            if short[k] and (k == 0 or not short[k - 1]):
                begun = t
            ends = instants[k + 1] if k + 1 < len(instants) else np.inf
            if short[k] and (k + 1 == len(instants) or not short[k + 1]) and ends >= start_s:
                answer = begun if not begun > end_s else np.nan
                break
        found.append(answer)
    return np.array(found)


@pytest.mark.parametrize("system", BUSY)
@pytest.mark.parametrize("seed", range(4))
def test_needed_equals_its_slow_twin(system, seed):
    run = busy(system, seed)
    assert run.scaleouts.height > 0
    found = run.scaleouts["needed_s"].to_numpy() - run.served.start_s
    np.testing.assert_allclose(found, slow_needed(run, 1.0), rtol=0, atol=1e-9)


def test_gaps_of_requests_that_ran_already_while_an_instance_was_started():
    """One request decodes from 0 to 8 s. The second one comes at 1.5 s; the tick of 2 s starts an instance, up at 3 s:
    the first one's gap from 2 to 3 s is the only one of a request that ran already."""
    run = served((0.0, 8, 8), (1.5, 8, 2))
    assert run.scaleouts.select("detected_s", "alone_s").rows() == [(2.0, 3.0)]
    gaps = gaps_around_scale_outs(run.served)
    assert gaps.during_s.tolist() == [1.0]
    assert len(gaps.outside_s) == 6 + 1
    found = run.metrics()
    assert (found["tbt_scaling_mean_s"], found["tbt_steady_p99_s"]) == (1.0, 1.0)


def slow_gaps(run):
    """Gap by gap."""
    lowered, out = run.served.lowered, run.served.outcome
    during, outside = [], []
    times = run.token_times()
    for r, request_id in enumerate(run.served.asked["request_id"].to_list()):
        mine = times.filter(pl.col("request_id") == request_id)["time_s"].to_numpy() - run.served.start_s
        for a, b in itertools.pairwise(mine.tolist()):
            hit = False
            for start_s, end_s, row, *_ in out.loads.tolist():
                same = lowered.instances.model[int(row)] == lowered.requests.model[r]
                end_s = np.inf if np.isnan(end_s) else end_s
                hit |= same and mine[0] <= start_s and start_s < b and end_s > a
            (during if hit else outside).append(b - a)
    return sorted(during), sorted(outside)


@pytest.mark.parametrize("system", BUSY)
def test_gaps_equal_their_slow_twin(system):
    found = 0
    for seed in range(4):
        run = busy(system, seed)
        gaps = gaps_around_scale_outs(run.served)
        during, outside = slow_gaps(run)
        np.testing.assert_allclose(sorted(gaps.during_s), during, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sorted(gaps.outside_s), outside, rtol=1e-9, atol=1e-9)
        found += len(during)
    assert found > 0


@given(st.integers(0, 2**32 - 1))
def test_overlaps_are_found_as_by_trying_all(seed):
    from workbench.operating.harm import _overlapped

    rng = np.random.default_rng(seed)
    begins = np.sort(rng.integers(0, 12, rng.integers(1, 9)).astype(float))
    ends = begins + rng.integers(0, 5, begins.size)
    start = rng.integers(0, 12, 20).astype(float)
    end, since = start + rng.integers(1, 4, 20), start - rng.integers(0, 9, 20)
    tried = [
        any(since[k] <= b and b < end[k] and e > start[k] for b, e in zip(begins, ends, strict=True)) for k in range(20)
    ]
    assert _overlapped(begins, ends, since, start, end).tolist() == tried


def test_transfers_and_links_by_hand():
    """Two start at 1 s from the SSD of one host, each over its own path in 4 s; later two more get a copy each from
    another instance over a ring: 2 s, and a slice of the 64 x 8 later."""
    system = wb.system("nccl", least=0, limit=1, engine_start=0.0, blocks=64)
    run = wb.simulate(
        system, cluster=quarters(), models="llama-3-8b", step=SECOND, kv_tokens=2**20,
        trace=table((100.0, 8, 30), (100.0, 8, 30), (106.5, 8, 3), (106.5, 8, 3)),
    )  # fmt: skip
    assert run.transfers.drop("bytes", "kind", "version").rows() == [
        (101.0, 105.0, "SSD of host 0", "instance 0", -1, "default", "ssd"),
        (101.0, 105.0, "SSD of host 0", "instance 1", -1, "default", "ssd"),
        (107.0, 109.0, "2 senders", "instance 2", -1, "default", "multicast"),
        (107.0, 109.0, "2 senders", "instance 3", -1, "default", "multicast"),
    ]
    assert set(run.transfers["bytes"]) == {float(WEIGHTS)}
    assert run.links.rows() == [
        (101.0, 105.0, "SSD of host 0", "weights", WEIGHTS / 2),  # two paths of a quarter of the weights a second
        (107.0, 109.0, "network to instance 2", "weights", WEIGHTS / 2),
        (107.0, 109.0, "network to instance 3", "weights", WEIGHTS / 2),
    ]
    assert run.metrics()["weight_bandwidth_share"] == pytest.approx(1.0)
    assert run.metrics()["weight_bytes"] == 4 * WEIGHTS


def test_bandwidth_got_is_less_where_a_chain_makes_the_last_one_wait():
    """Three targets of one source by a chain of two blocks: 2, 3 and 4 s where the card alone would take 2."""
    system = wb.system("faasnet", least=1, limit=1, schedule="chain", blocks=2, autoscaler="queue")
    run = wb.simulate(
        system, cluster=quarters(), models="llama-3-8b", step=SECOND, kv_tokens=2**20, trace=table(*[(0.0, 8, 20)] * 4)
    )
    assert (run.scaleouts["alone_s"] - run.scaleouts["detected_s"]).to_list() == [2.0, 3.0, 4.0]
    assert run.metrics()["weight_bandwidth_share"] == pytest.approx(6 / 9)
    rates = sorted(run.links["bytes_per_s"].to_list(), reverse=True)
    assert rates == pytest.approx([WEIGHTS / 2, WEIGHTS / 3, WEIGHTS / 4])


def test_nominal_rates_are_those_of_the_data_sheets():
    """BlitzScale cluster A gets 0.8 of its PCIe links: 12.8 of 16 GB/s."""
    run = wb.simulate(
        wb.system("allcache", **RULE), cluster="blitzscale-a", models="llama-3-8b", step=SECOND, kv_tokens=2**20,
        trace=table((0.0, 8, 9), (0.0, 8, 9)),
    )  # fmt: skip
    assert run.scaleouts.height == 1
    assert run.metrics()["weight_bandwidth_share"] == pytest.approx(0.8)


def test_a_load_that_is_lost_brought_nothing():
    from workbench.serving import Failure

    run = served(
        (0.0, 8, 9), (0.5, 8, 9), failures=[Failure(time_s=1.5, instance=1)], system="serverlessllm@blitzscale"
    )
    lost = run.scaleouts.row(0, named=True)
    assert (lost["cancelled"], lost["bytes"]) == (True, 0.0)
    assert run.transfers.row(0, named=True)["bytes"] == 0.0
    assert np.isnan(run.transfers["end_s"][0])
    assert run.metrics()["weight_bytes"] == WEIGHTS * (~run.scaleouts["cancelled"]).sum()


@pytest.mark.parametrize("system", SCALING)
def test_tables_of_both_backends_agree_for_several_models(system):
    one, other = busy(system, 1), busy(system, 1, "simpy")
    for name in ("scaleouts", "transfers", "links", "allocation"):
        assert getattr(one, name).equals(getattr(other, name)), name


def test_needed_of_no_loads_is_empty():
    run = wb.simulate("fixed", cluster=quarters(), models="llama-3-8b", trace=table((0.0, 8, 1)), step=SECOND)
    assert needed_s(run.served.lowered, run.served.outcome, np.ones(1), 1.0).size == 0
    assert run.scaleouts.is_empty()
    columns = ["start_s", "end_s", "source", "target", "block", "bytes", "kind", "model", "version", "path"]
    assert run.transfers.columns == columns
    assert run.links.columns == ["start_s", "end_s", "link", "kind", "bytes_per_s"]
