"""The roofline and the fitted kernels: numbers by hand, scaling, monotony, and the bound that nothing beats."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError, UnknownName, UserError
from workbench.latency import overheads, step_time, step_time_sources
from workbench.latency.rates import achievable_rates
from workbench.profiles import accelerator, accelerators, deployment, model

NO_OVERHEADS = overheads(step_s=0.0, layer_s=0.0, request_s=0.0)


def test_the_bound_by_hand():
    """Llama-2-7B on an A100: 2,039 GB/s and 312 TFLOP/s by the data sheet."""
    step = step_time("llama-2-7b", "a100")
    weights = 2 * (32 * 202_375_168 + 32_000 * 4096)
    found = step.decode(8, 8 * 1024)
    assert found.bound_s == pytest.approx((weights + 8 * 1024 * 524_288) / 2039e9)
    flops = 2 * 32 * 202_375_168 * 4096 + 2 * 32_000 * 4096 + 4 * 32 * 4096 * (4096 * 4097 / 2)
    assert step.prefill(4096).bound_s == pytest.approx(flops / 312e12)


def test_a_decode_step_by_hand():
    """Weights at 1,494 GB/s, KV at 1,504 GB/s (measured), activations, elementwise work; no overheads."""
    step = step_time("llama-2-7b", "a100", overheads=NO_OVERHEADS)
    weights = 2 * (32 * 202_375_168 + 32_000 * 4096)
    # Inputs and outputs of the five products, each 2 bytes: k + n of 12,288 + 4,096 and so on.
    moved = 2 * (32 * (4096 + 12_288 + 4096 + 4096 + 4096 + 22_016 + 11_008 + 4096) + 4096 + 32_000)
    # Two norms read and write, two sums read two and write one; rotary on q and k; activation 2 in, 1 out.
    moved += 2 * 32 * (4 * 4096 + 6 * 4096 + 2 * (4096 + 4096) + 3 * 11_008)
    expected = (weights + moved) / 1494e9 + 1000 * 524_288 / 1504e9
    assert step.decode_s(1, 1000) == pytest.approx(expected, rel=1e-12)


def test_a_long_prompt_by_hand():
    """4,096 tokens and more compute at 284 TFLOP/s, attention at 0.55 of 312 (measured); no overheads."""
    step = step_time("llama-2-7b", "a100", overheads=NO_OVERHEADS)
    products = 2 * 32 * 202_375_168 * 8192 / 284e12
    attention = 4 * 32 * 4096 * (8192 * 8193 / 2) / (0.55 * 312e12)
    rest = step.prefill_s(8192) - products - attention
    assert 0 < rest < 0.12 * (products + attention)  # tiles on the diagonal, traffic of attention and elementwise work


def test_products_of_1024_rows_are_slower_than_large_ones():
    """0.84 of peak at 1,024 tokens, 0.91 at 4,096 and above, linear between (notes on data §6)."""
    slower = achievable_rates(accelerator("a100")).slowdown(np.array([100, 1024, 2560, 4096, 9000]))
    assert slower == pytest.approx([0.91 / 0.84, 0.91 / 0.84, 0.91 / 0.875, 1.0, 1.0], rel=1e-3)


@pytest.mark.parametrize("name", accelerators()["name"].to_list())
def test_every_accelerator_has_a_step_time_not_below_its_bound(name):
    small = model("llama-3.1-8b").with_dtype("int4")
    device = accelerator(name)
    if float(device.memory_bytes) < 12e9:
        small = model("qwen2.5-7b").with_dtype("int4")
    step = step_time(small, device)
    for found in (step.decode([1, 64], [100, 64_000]), step.prefill([1, 100, 3000]), step.mixed(512, 8, 8000)):
        assert (np.asarray(found.seconds) >= np.asarray(found.bound_s)).all()
        assert np.isfinite(found.seconds).all()
        assert not np.any(found.outside)


STEPS = {
    "roofline": step_time("llama-3.1-8b", "h100"),
    "kernels": step_time("llama-3.1-8b", "h100", source="kernels"),
    "roofline, TP 4": step_time("llama-2-70b", "a100", deployment(tp=4)),
    "kernels, TP 4": step_time("llama-2-70b", "a100", deployment(tp=4), source="kernels"),
    "fp8": step_time("llama-3.1-8b", "h200", deployment(dtype="fp8"), source="kernels"),
    "RTX 4090": step_time("llama-3.1-8b", "rtx-4090", source="kernels"),
}
counts = st.integers(1, 512)


@pytest.mark.parametrize("name", STEPS)
@given(st.integers(1, 30_000), st.integers(0, 30_000), counts, st.integers(1, 8000))
def test_nothing_beats_the_bound_and_more_work_never_takes_less_time(name, tokens, cached, batch, context):
    step = STEPS[name]
    total = batch * context
    for found in (step.prefill(tokens, cached), step.decode(batch, total), step.mixed(tokens, batch, total, cached)):
        assert found.seconds >= found.bound_s > 0
    prompt, decode, both = (
        step.prefill_s(tokens, cached),
        step.decode_s(batch, total),
        step.mixed_s(tokens, batch, total, cached),
    )
    assert step.prefill_s(tokens + 64, cached) >= prompt
    assert step.prefill_s(tokens, cached + 64) >= prompt
    assert step.decode_s(batch, total + 64) >= decode
    assert step.decode_s(batch + 1, total + context) >= decode
    assert max(prompt, decode) <= both <= prompt + decode


@pytest.mark.parametrize("source", ["roofline", "kernels"])
def test_tensor_parallelism_helps_less_than_its_number_of_accelerators(source):
    times = [
        step_time("llama-3.1-70b", "h200", deployment(tp=tp, dtype="fp8"), source=source).decode_s(16, 16_000)
        for tp in (1, 2, 4, 8)
    ]
    for slower, faster in itertools.pairwise(times):
        assert slower / 2 < faster < slower
    # Two all-reduces a layer of at least 16.7 us each over 8 (NCCL on H100 and H200).
    alone = step_time("llama-3.1-70b", "h200", deployment(tp=8, dtype="fp8"), source=source)
    assert alone.decode_s(1, 10) > 80 * 2 * 16e-6


def test_tp_without_nvlink_goes_over_pcie():
    # 20.1 GB/s bus bandwidth over two L40S (notes on data): a prompt of 4,096 tokens pays for it.
    two, one = (step_time("llama-3.1-8b", "l40s", deployment(tp=tp)) for tp in (2, 1))
    message_s = 32 * 2 * 4096 * 4096 * 2 / 20e9
    assert two.prefill_s(4096) == pytest.approx(one.prefill_s(4096) / 2 + message_s, rel=0.05)


def test_cached_tokens_are_attended_and_not_computed():
    step = step_time("llama-3.1-8b", "h100")
    whole, rest = step.prefill_s(8192), step.prefill_s(4096, cached_tokens=4096)
    assert step.prefill_s(4096) < rest < whole
    # Two chunks cost what the whole does, but for the overheads and weights of a second step.
    assert step.prefill_s(4096) + rest == pytest.approx(whole, rel=0.12)


def test_several_prompts_attend_to_themselves_only():
    step = step_time("llama-3.1-8b", "h100", overheads=NO_OVERHEADS)
    assert step.prefill_s(8192, requests=4) < step.prefill_s(8192)
    assert step.prefill_s(8192, requests=4) > 4 * step.prefill_s(2048) * 0.9


def test_overheads_are_bliss_by_default_and_can_be_set():
    """Notes on peers §10: 126 us a step, 32 us a layer, 4 us a request."""
    bare = step_time("llama-3.1-8b", "h100", overheads=NO_OVERHEADS).decode_s(10, 1000)
    default = step_time("llama-3.1-8b", "h100").decode_s(10, 1000)
    assert default - bare == pytest.approx(126e-6 + 32 * 32e-6 + 10 * 4e-6, rel=1e-9)
    with pytest.raises(InputError, match="layer_s"):
        overheads(layer_s=-1.0)


def test_numbers_and_arrays_give_the_same():
    step = step_time("llama-3.1-8b", "h100")
    batch, context = np.array([[1, 8], [64, 256]]), np.array([[100, 8000], [64_000, 256_000]])
    grid = step.decode_s(batch, context)
    assert grid.shape == (2, 2)
    assert grid[1, 0] == step.decode_s(64, 64_000)
    assert isinstance(step.decode_s(64, 64_000), float)
    assert step.prefill_s(np.array([100, 200]), 50).tolist() == [step.prefill_s(100, 50), step.prefill_s(200, 50)]
    assert step.decode_s([], []).shape == (0,)


def test_an_answer_says_where_it_comes_from():
    step = step_time("llama-3.1-8b", "h100")
    found = step.decode([1, 2], [10, 20])
    assert "achievable rates" in found.source
    assert "achievable rates" in repr(found)
    assert found.table().columns == ["seconds", "bound_s", "outside_fitted_range", "status", "source"]
    assert found.table()["source"].to_list() == [found.source] * 2
    assert {row.status for row in step.sources()} <= {"measured", "fitted", "inferred", "datasheet"}
    assert all(len(row.source) > 8 for row in step.sources())
    inferred = step_time("llama-3.1-8b", "h20")
    assert "inferred from other accelerators" in inferred.source


@pytest.mark.parametrize(
    ("call", "field", "problem"),
    [
        (lambda step: step.decode_s(-1, 10), "batch", "-1"),
        (lambda step: step.decode_s(4, float("nan")), "context_tokens_total", "nan"),
        (lambda step: step.decode_s(4, 3), "context_tokens_total", "below the batch"),
        (lambda step: step.prefill_s(float("inf")), "tokens", "inf"),
        (lambda step: step.prefill_s("many"), "tokens", "'many'"),
        (lambda step: step.prefill_s(10, -5), "cached_tokens", "-5"),
        (lambda step: step.prefill_s(10, requests=11), "requests", "not between 1 and the tokens"),
        (lambda step: step.prefill_s(10, requests=0), "requests", "not between 1 and the tokens"),
        (lambda step: step.decode_s([1, 2], [10, 20, 30]), None, "do not fit together"),
        (lambda step: step.mixed_s([1, 2], 1, [[1], [2], [3]], cached_tokens=[1, 2, 3]), None, "do not fit together"),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, field, problem):
    with pytest.raises(InputError) as caught:
        call(STEPS["roofline"])
    assert caught.value.field == field
    assert problem in str(caught.value)


def test_nothing_takes_no_time():
    step = STEPS["roofline"]
    assert step.decode_s(0, 0) == 0.0
    assert step.prefill_s(0) == 0.0
    assert step.mixed_s(0, 4, 400) == step.decode_s(4, 400)
    assert step.mixed_s(100, 0, 0) == step.prefill_s(100)


def test_sources_by_name():
    assert step_time_sources()["source"].to_list()[:4] == ["roofline", "kernels", "aegaeon", "blitzscale"]
    with pytest.raises(UnknownName, match="near names: roofline"):
        step_time("llama-3.1-8b", "h100", source="rofline")
    with pytest.raises(UserError, match="No measured sweep of gemm \\(dtype bf16\\) was found for b200"):
        step_time("llama-3.1-8b", "b200", source="kernels")
    with pytest.raises(UserError, match="No measured sweep of decode attention"):
        step_time("llama-3.1-8b", "a40", source="kernels")


@pytest.mark.parametrize("tp", [0, -1, 1.5, "2", None, True, [1], 10**400])
def test_a_tp_that_is_none_is_one_sentence(tp):
    from workbench.latency.messages import all_reduce
    from workbench.latency.work import work_of

    for call in (lambda: work_of(model("llama-3-8b"), tp), lambda: all_reduce(accelerator("h100"), tp)):
        with pytest.raises(UserError) as caught:
            call()
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", ["3", ["1"], [True], True, 10**400, 1j, None, {}, b"1"])
def test_numbers_that_are_none_are_refused_by_every_step(value):
    from workbench.latency.closed_loop import closed_loop_tpot_s

    step = step_time("llama-3-8b", "h100")
    for call in (
        lambda: step.prefill(value),
        lambda: step.decode_s(value, 100),
        lambda: step.mixed(100, 4, value),
        lambda: closed_loop_tpot_s(step, 4, 100, value),
        lambda: overheads(layer_s=value) if value is not None else step.prefill_s(value),
    ):
        with pytest.raises(InputError):
            call()


def test_a_server_without_output_has_no_time_per_output_token():
    from workbench.latency.closed_loop import closed_loop_tpot_s

    with pytest.raises(InputError, match="output_tokens"):
        closed_loop_tpot_s(step_time("llama-3-8b", "h100"), 4, 100, 0)


def test_overheads_are_refused_where_they_would_be_ignored():
    """Published coefficients hold their overheads already."""
    with pytest.raises(InputError, match="leave them out"):
        step_time("qwen2.5-7b", "h800-80gb-sxm", source="aegaeon", overheads=NO_OVERHEADS)
    with pytest.raises(InputError, match="deployment"):
        step_time("llama-3-8b", "h100", "tp2")
    with pytest.raises(InputError, match="overheads"):
        step_time("llama-3-8b", "h100", overheads={"layer_s": 0.0})
