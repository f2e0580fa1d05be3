"""The same pool on a GPU: each model says what it says alone, weights come from pinned memory on a side stream.

Skipped where torch finds no GPU. Run with `-s` to read the rates of copies; no speed is asserted.
"""

import numpy as np
import pytest

from workbench.executor.transformer import Shape
from workbench.pooling.real import ByChance, Kind, Prompt, measure_starts, require_same, run_turns
from workbench.profiles.measure_gpu import gpu_count

pytestmark = [pytest.mark.torch, pytest.mark.real]
SHAPES = [Shape(layers=4, kv_heads=heads, longest=96) for heads in (8, 4, 1)]


@pytest.fixture(scope="module", autouse=True)
def gpu():
    if not gpu_count():
        pytest.skip("torch finds no GPU here")


def test_models_of_a_pool_say_what_they_say_alone():
    random = np.random.default_rng(1)
    prompts = [Prompt(m, tuple(random.integers(0, 512, 20).tolist()), 24) for _ in range(4) for m in range(3)]
    kinds = [Kind(shape, number) for number, shape in enumerate(SHAPES)]
    run = run_turns(kinds, prompts, ByChance(7, 1), device="cuda")
    require_same(run)
    assert run.left_bytes == 0


def test_pinned_copies_are_measured_beside_pageable_ones():
    run = measure_starts(Shape(layers=8, hidden=1024, heads=8, ffn=2752, longest=64), 3, device="cuda")
    print(run.copies)
    assert run.copies["way"].str.starts_with("pinned").sum() == 2
    assert run.removed > 0.8
