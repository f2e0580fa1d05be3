"""The compiled engine: its jumps equal its steps, nothing is lost, logs grow, and it needs no more than it says."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_cases import asked, cluster, place, scenario

from workbench.serving.model import run_compiled
from workbench.serving.model.lowered import DONE, INSIDE, REJECTED

scenarios = st.integers(0, 2**32 - 1).map(lambda seed: scenario(np.random.default_rng(seed)))


@settings(max_examples=300)
@given(scenarios)
def test_jumps_equal_steps_in_every_bit(lowered):
    for jumped, stepped in zip(run_compiled(lowered), run_compiled(lowered, jumps=False), strict=True):
        np.testing.assert_array_equal(jumped, stepped, strict=True)


@settings(max_examples=300)
@given(scenarios)
def test_nothing_is_lost(lowered):
    out, requests, instances = run_compiled(lowered), lowered.requests, lowered.instances
    n, counts = out.status.size, np.bincount(out.status, minlength=3)
    assert counts[INSIDE] + counts[DONE] + counts[REJECTED] == n
    done, rejected = out.status == DONE, out.status == REJECTED
    assert (out.made[done] == requests.output[done]).all()
    assert not out.made[rejected].any()
    assert (out.made <= requests.output).all()
    made = np.zeros(n, np.int64)
    np.add.at(made, out.segments[:, 0], out.segments[:, 2])
    assert (made == out.made).all()
    assert (np.isnan(out.finish_s) == ~done).all()
    assert (np.isnan(out.first_token_s) == (out.made == 0)).all()
    assert (out.peak_blocks <= instances.blocks).all()
    if instances.reserve.all():
        assert not out.evictions.any()
    for j in range(instances.model.size):
        ends = out.iteration_end_s[out.iteration_at[j] : out.iteration_at[j + 1]]
        assert (np.diff(ends) > 0).all()
        assert (ends <= lowered.until_s).all()
        assert out.busy_s[j] <= (ends[-1] if ends.size else 0.0) * (1 + 1e-12)


@settings(max_examples=100)
@given(scenarios)
def test_tokens_of_a_request_come_in_order_and_end_with_it(lowered):
    out = run_compiled(lowered)
    previous = (-1, 0, 0.0)
    for request, first, count, instance, iteration in out.segments.tolist():
        ends = out.iteration_end_s[out.iteration_at[instance] + iteration :][:count]
        assert iteration + count <= out.iteration_at[instance + 1] - out.iteration_at[instance]
        if request == previous[0]:
            assert first == previous[1]
            assert ends[0] > previous[2]
        else:
            assert first == 0
            assert ends[0] == out.first_token_s[request]
        if out.status[request] == DONE and first + count == out.made[request]:
            assert ends[-1] == out.finish_s[request]
        previous = (request, first + count, ends[-1])


def test_the_logs_grow_as_long_as_the_run():
    """One request of 100,000 tokens at a second each: more pages than the log begins with. Then more segments: two
    instances that fail in turn pass a request on a thousand times, every ten seconds."""
    plenty = {"block": 65_536, "blocks": 10, "chunk": 10**6, "budget": 10**6}
    out = run_compiled(cluster([asked(0, 1, 100_000)], [place(**plenty)]))
    assert out.finish_s.tolist() == [100_000.0]
    assert (out.iteration_end_s == np.arange(1, 100_001)).all()
    failures = [(10.5 + 10 * k, k % 2, 15.5 + 10 * k) for k in range(1000)]
    moved = run_compiled(cluster([asked(0, 1, 20_000)], [place(**plenty)] * 2, failures, route=5))
    assert moved.moves.tolist() == [1000]
    assert moved.segments[:, 2].sum() == moved.made[0] == 20_000
    assert len(moved.segments) == 1001
    # The first failure, at 10.5 s, loses half a step; each of the others falls on the end of a step and loses it all.
    assert moved.finish_s.tolist() == [20_000 + 0.5 + 999]


def test_nobody_to_serve_is_an_empty_outcome():
    out = run_compiled(cluster([], [place()]))
    assert out.status.size == 0
    assert out.segments.shape == (0, 5)
    assert out.iteration_at.tolist() == [0, 0]
