"""Fitted kernels and the roofline beside the anchors that the notes on data §9 print."""

import numpy as np
import polars as pl
import pytest

from workbench.latency import step_time
from workbench.latency.kernel_coefficients import kernel_coefficients
from workbench.latency.rates import achievable_rates, peak_rates
from workbench.latency.validation.kernel_models import gemm_seconds
from workbench.latency.work import work_of
from workbench.profiles import accelerator, deployment, model

TOKENS = (1, 128, 512, 1024, 2048, 4096)
LAYERS = {
    # Milliseconds of a layer's four matrix products at these numbers of tokens.
    ("a100-80gb-sxm", "llama-2-7b", 1): (0.266, 0.352, 0.953, 1.959, 3.825, 7.492),
    ("h100-80gb-sxm", "llama-2-7b", 1): (0.156, 0.180, 0.329, 0.565, 1.087, 2.205),
    ("a40-48gb", "llama-2-7b", 1): (0.727, 0.908, 2.051, 3.946, 7.453, 15.173),
    ("a100-80gb-sxm", "llama-2-70b", 8): (0.152, 0.204, 0.583, 1.012, 1.982, 3.623),
    ("h100-80gb-sxm", "llama-2-70b", 8): (0.087, 0.105, 0.183, 0.332, 0.619, 1.183),
    ("a100-80gb-sxm", "llama-3-8b", 1): (0.276, 0.377, 0.994, 2.175, 4.072, 7.817),
}


def products_s(gpu: str, name: str, tp: int, kind: str) -> np.ndarray:
    device, found = accelerator(gpu), kernel_coefficients().require(kind, gpu, dtype="bf16", sweep="vidur")
    rates = peak_rates(device) if kind == "gemm" else found.over(achievable_rates(device))
    total = np.zeros(len(TOKENS))
    for matrix in work_of(model(name), tp).matrices:
        shape = pl.DataFrame({"tokens": TOKENS, "rows": matrix.rows, "columns": matrix.columns}).cast(pl.Float64)
        total += gemm_seconds(shape, rates, found, "bf16")
    return total


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: "-".join(map(str, case)))
def test_products_of_a_layer(case):
    measured = np.array(LAYERS[case]) * 1e-3
    error = np.abs(products_s(*case, "gemm") / measured - 1)
    assert np.median(error) <= 0.10
    assert error.max() <= 0.20
    assert np.median(np.abs(products_s(*case, "launch") / measured - 1)) <= 0.15


@pytest.mark.parametrize(
    ("tokens", "milliseconds", "within"),
    [(1, 16.34, 0.05), (16, 16.87, 0.05), (128, 20.80, 0.08), (256, 25.05, 0.30)],
)
def test_linear_time_of_a_whole_model_on_an_rtx_4090(tokens, milliseconds, within):
    """Llama-3.1-8B, all but attention; measured by LLMServingSim's profiler.

    At 256 tokens arithmetic and reading take equally long, and activations stay in the level-2 cache of 72 MB.
    """
    step = step_time("llama-3.1-8b", "rtx-4090", source="kernels")
    attention = kernel_coefficients().require("decode_attention", "rtx-4090-24gb")
    attention_s = 32 * (attention.launch_s + tokens * 8 * attention.s_per_kv_head)
    overheads_s = 126e-6 + tokens * 4e-6
    assert step.decode_s(tokens, tokens) - attention_s - overheads_s == pytest.approx(milliseconds * 1e-3, rel=within)


@pytest.mark.parametrize(
    ("device", "tp", "prefill_ms", "decode_ms"),
    # Splitwise's engine of 2023, Llama-2-70B: least-squares fits of prompts P and of batches B at prompts of 512.
    [("a100", 8, lambda p: 39.3 + 0.1061 * p + 9.52e-6 * p * p, lambda b: 43.9 + 0.40 * b),
     ("h100", 8, lambda p: 28.8 + 0.0564 * p + 5.40e-6 * p * p, lambda b: 29.6 + 0.31 * b),
     ("a100", 2, lambda p: 25.1 + 0.3356 * p + 3.28e-6 * p * p, lambda b: 58.2 + 0.22 * b),
     ("h100", 2, lambda p: 15.6 + 0.1403 * p + 2.63e-6 * p * p, lambda b: 38.7 + 0.13 * b)],
)  # fmt: skip
def test_an_engine_of_2023_is_slower_than_the_roofline_says(device, tp, prefill_ms, decode_ms):
    step = step_time("llama-2-70b", device, deployment(tp=tp))
    for prompt in (512, 2048):
        assert step.prefill(prompt).bound_s < step.prefill_s(prompt) < prefill_ms(prompt) * 1e-3
    for batch in (1, 16):
        found = step.decode(batch, batch * 512)
        assert found.bound_s < found.seconds < decode_ms(batch) * 1e-3


def test_distserve_is_within_a_third_of_the_roofline():
    """A100, OPT-13B, TP 1, in ms: 18.10 + 0.1019 t + 7.12e-6 t² and 19.93 + 6.27e-4 context + 0.0385 batch."""
    step = step_time("opt-13b", "a100")
    for tokens in (512, 1024, 2048):
        measured = 18.10e-3 + 0.1019e-3 * tokens + 7.12e-9 * tokens**2
        assert measured * 2 / 3 < step.prefill_s(tokens) < measured
    for batch in (1, 32, 64):
        measured = 19.93e-3 + 6.27e-7 * batch * 512 + 0.0385e-3 * batch
        assert measured * 2 / 3 < step.decode_s(batch, batch * 512) < measured
