"""Prints how fast step times are; run with `pytest -s tests/benchmarks`."""

import warnings

import numpy as np
import pytest
from timing import median_s

from workbench.latency import OutsideBox, step_time
from workbench.latency.kernels.step import step_s
from workbench.profiles import deployment

POINTS = 1_000_000


@pytest.mark.parametrize(
    ("source", "name", "device", "tp"),
    [
        ("roofline", "llama-3.1-8b", "h100", 1),
        ("roofline", "llama-2-70b", "a100", 8),
        ("kernels", "llama-3.1-8b", "h100", 1),
        ("aegaeon", "llama-2-13b", "h800", 1),
        ("blitzscale", "qwen2.5-72b", "a800", 4),
    ],
)
def test_a_closed_form_step_time(source, name, device, tp, budget):
    """Budget: 1 us a point vectorised, checks included; a million points in less than a second."""
    step = step_time(name, device, deployment(tp=tp), source=source)
    random = np.random.default_rng(0)
    batch, tokens = random.integers(1, 257, POINTS).astype(float), random.integers(1, 8193, POINTS).astype(float)
    context = batch * random.integers(1, 4097, POINTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideBox)
        taken = {
            "decode": median_s(lambda: step.decode_s(batch, context)),
            "prefill": median_s(lambda: step.prefill_s(tokens)),
            "mixed": median_s(lambda: step.mixed_s(tokens, batch, context)),
        }
    for phase, seconds in taken.items():
        budget("step time", seconds / POINTS, f"{phase} by {source}, {name} on {device}, TP {tp}")


def test_a_single_step_inside_a_compiled_loop():
    """No budget: what an event loop pays for one step time."""
    from workbench.jit import numba

    kind, coefficients, bound = step_time("llama-3.1-8b", "h100", source="kernels").kernel_arguments

    @numba.njit
    def loop(kind, coefficients, bound, steps):
        total = 0.0
        for index in range(steps):
            batch = 1.0 + index % 256
            total += step_s(kind, coefficients, bound, 0.0, 0.0, 0.0, 0.0, batch, 1000.0 * batch)
        return total

    seconds = median_s(lambda: loop(kind, coefficients, bound, POINTS))
    print(f"\none step time in a compiled loop: {seconds / POINTS * 1e9:.0f} ns")
    assert seconds / POINTS <= 1e-6
