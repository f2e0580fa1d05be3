"""The step kernels against their slow twins, and what must hold for any numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.latency.kernels import layout
from workbench.latency.kernels.parts import both_s, decode_attention_s, prefill_attention_s, slowdown
from workbench.latency.kernels.slow import (
    both_slow,
    bound_slow,
    decode_attention_slow,
    efficiency_slow,
    linear_slow,
    prefill_attention_slow,
    roofline_slow,
)
from workbench.latency.kernels.step import bound_s, fill_bounds, fill_steps, linear_s, roofline_s, step_s

seconds = st.floats(1e-9, 1e-2)
exponents = st.one_of(st.just(0.0), st.just(1.0), st.floats(1.0, 8.0))


@st.composite
def steps(draw):
    """A step: prompts, decoding requests, both or none, as counts that fit together."""
    tokens = draw(st.integers(0, 20_000))
    prompts = draw(st.integers(1, min(8, tokens))) if tokens else 0
    cached = draw(st.integers(0, 5000))
    requests = draw(st.integers(0, 500))
    context = requests * draw(st.integers(1, 4000))
    pairs = tokens * cached + tokens * (tokens / max(prompts, 1) + 1) / 2
    return {
        "tokens": float(tokens), "pairs": pairs, "prompt_context": float(tokens + prompts * cached),
        "prompts": float(prompts), "requests": float(requests), "context": float(context),
    }  # fmt: skip


@given(seconds, seconds, exponents)
def test_overlap_equals_its_twin_and_is_never_below_the_roofline(compute, memory, exponent):
    found = both_s(compute, memory, exponent)
    assert found == pytest.approx(both_slow(compute, memory, exponent), rel=1e-9)
    assert max(compute, memory) <= found <= (compute + memory) * (1 + 1e-12)


@given(st.floats(1, 1e5), st.floats(0.8, 2.0))
def test_efficiency_between_two_sizes_equals_its_twin(tokens, at_few):
    twin = efficiency_slow(tokens, [(1024.0, 1 / at_few), (4096.0, 1.0)])
    assert slowdown(tokens, 1024.0, 4096.0, at_few) == pytest.approx(1 / twin, rel=1e-12)


@given(steps(), seconds, seconds, seconds, seconds, seconds, exponents)
def test_attention_equals_its_twins(step, a, b, c, launch, split, exponent):
    if step["requests"]:
        found = decode_attention_s(step["requests"], step["context"], a, b, launch, split, 128.0)
        twin = decode_attention_slow(step["requests"], step["context"], a, b, launch, split, 128.0)
        assert found == pytest.approx(twin, rel=1e-12)
    found = prefill_attention_s(
        step["prompts"], step["tokens"], step["pairs"], step["prompt_context"], a, b, c, split, launch, exponent
    )
    twin = prefill_attention_slow(step, b, c, split, launch, a, exponent)
    assert found == pytest.approx(twin, rel=1e-9)


@st.composite
def rooflines(draw):
    """Coefficients of a roofline as the twin takes them and as the kernel does."""
    layers, at_few = draw(st.integers(1, 9)), draw(st.floats(0.9, 1.5))
    names = ("compute_s_per_token", "weights_s", "activations_s_per_token", "launch_s")
    gemms = [{name: draw(seconds) for name in names} for _ in range(layout.LAYER_GEMMS + 1)]
    overhead_names = ("step_s", "layer_s", "request_s", "elementwise_s_per_token", "messages_s", "messages_s_per_token")
    overheads = {name: draw(seconds) for name in overhead_names} | {"exponent": draw(exponents)}
    decode = {"launch_s": draw(seconds), "split_s": draw(seconds), "split_tokens": 128.0}
    decode |= {"s_per_request": draw(seconds), "s_per_context_token": draw(seconds)}
    prefill = {"launch_s": draw(seconds), "s_per_pair": draw(seconds), "s_per_token": draw(seconds)}
    prefill |= {"s_per_context_token": draw(seconds), "exponent": draw(exponents), "s_per_prompt": draw(seconds)}
    flat = np.array(
        [float(layers), *(overheads[name] for name in overhead_names), 1024.0, 4096.0, at_few, overheads["exponent"],
         *decode.values(), *prefill.values(), *(gemm[name] for gemm in gemms for name in names)]
    )  # fmt: skip
    twin = {
        "layers": layers, "gemms": gemms[:-1], "head": gemms[-1], "overheads": overheads,
        "attention": {"decode": decode, "prefill": prefill}, "efficiencies": [(1024.0, 1 / at_few), (4096.0, 1.0)],
    }  # fmt: skip
    return flat, twin


@given(steps(), rooflines())
def test_the_roofline_equals_its_twin(step, numbers):
    flat, twin = numbers
    assert len(flat) == layout.ROOFLINE_SIZE
    assert roofline_s(flat, *step.values()) == pytest.approx(roofline_slow(step, **twin), rel=1e-9)


@given(steps(), st.lists(seconds, min_size=7, max_size=7))
def test_linear_coefficients_equal_their_twin(step, numbers):
    found = linear_s(np.array(numbers), *step.values())
    assert found == pytest.approx(linear_slow(step, numbers[:3], numbers[3:6], numbers[6]), rel=1e-12)


@given(
    steps(),
    st.lists(st.floats(1e3, 1e12), min_size=6, max_size=6),
    st.lists(st.floats(1e9, 1e15), min_size=3, max_size=3),
)
def test_the_bound_equals_its_twin(step, work, peaks):
    flops, memory, link = peaks
    flat = np.array([*(each / flops for each in work[:3]), work[3] / memory, work[4] / memory, work[5] / link])
    twin = bound_slow(
        step, dict(zip(("token", "sampled", "pair"), work[:3], strict=True)),
        dict(zip(("weights", "context_token", "message"), work[3:], strict=True)),
        {"flops": flops, "memory": memory, "link": link},
    )  # fmt: skip
    assert bound_s(flat, *step.values()) == pytest.approx(twin, rel=1e-9)


@given(steps(), st.lists(seconds, min_size=7, max_size=7), st.lists(seconds, min_size=6, max_size=6))
def test_no_step_is_below_its_bound(step, numbers, bound):
    found = step_s(layout.LINEAR, np.array(numbers), np.array(bound), *step.values())
    assert found == max(linear_s(np.array(numbers), *step.values()), bound_s(np.array(bound), *step.values()))


@given(st.lists(steps(), min_size=1, max_size=5), rooflines())
def test_arrays_are_filled_as_single_steps_are_computed(several, numbers):
    flat, bound = numbers[0], np.full(layout.BOUND_SIZE, 1e-9)
    columns = [np.array(column) for column in zip(*(step.values() for step in several), strict=True)]
    filled, bounds = np.empty(len(several)), np.empty(len(several))
    fill_steps(layout.ROOFLINE, flat, bound, *columns, filled)
    fill_bounds(bound, *columns, bounds)
    for index, step in enumerate(several):
        assert filled[index] == step_s(layout.ROOFLINE, flat, bound, *step.values())
        assert bounds[index] == bound_s(bound, *step.values())


def test_no_work_takes_no_time():
    nothing = (0.0,) * 6
    assert roofline_s(np.ones(layout.ROOFLINE_SIZE), *nothing) == 0.0
    assert linear_s(np.ones(layout.LINEAR_SIZE), *nothing) == 0.0
    assert bound_s(np.ones(layout.BOUND_SIZE), *nothing) == 0.0


def test_a_linear_step_of_both_kinds_reads_the_weights_once():
    # 5 ms + 100 x 1 ms and 3 ms + 10 x 1 ms: the smaller intercept, 3 ms, counts once.
    numbers = np.array([5e-3, 1e-3, 0.0, 3e-3, 0.0, 1e-3, 0.0])
    assert linear_s(numbers, 100.0, 5050.0, 100.0, 1.0, 10.0, 10.0) == pytest.approx(0.105 + 0.013 - 0.003)


def test_a_roofline_of_one_layer_by_hand():
    # Four products of 1 ms weights each that compute 10 us a token, at 50 tokens (0.5 ms) and at 200 (2 ms).
    flat = np.zeros(layout.ROOFLINE_SIZE)
    flat[layout.LAYERS] = 1.0
    flat[layout.FEW_TOKENS], flat[layout.MANY_TOKENS], flat[layout.SLOWDOWN_AT_FEW] = 1024.0, 4096.0, 1.0
    for index in range(layout.LAYER_GEMMS):
        place = layout.GEMMS + index * layout.GEMM_SIZE
        flat[place + layout.GEMM_COMPUTE_S_PER_TOKEN], flat[place + layout.GEMM_WEIGHTS_S] = 1e-5, 1e-3
    assert roofline_s(flat, 0.0, 0.0, 0.0, 0.0, 50.0, 50.0) == pytest.approx(4e-3)
    assert roofline_s(flat, 0.0, 0.0, 0.0, 0.0, 200.0, 200.0) == pytest.approx(8e-3)
    flat[layout.GEMM_EXPONENT] = 2.0
    expected = 4 * math.hypot(1e-3, 2e-3)
    assert roofline_s(flat, 0.0, 0.0, 0.0, 0.0, 200.0, 200.0) == pytest.approx(expected)
