"""Densities, steady batches, memory split and costs against printed numbers and against sums written out."""

import numpy as np
import pytest
from blending_cases import llama_costs, looked_up
from hypothesis import given
from hypothesis import strategies as st

from workbench.blending.model.costs import Engine, costs_of, seconds_of
from workbench.blending.model.density import Density, request_density, steady_batch, total_density
from workbench.blending.policy import memory_split
from workbench.errors import InputError
from workbench.profiles import accelerator, model

LENGTHS = st.tuples(st.integers(1, 5000), st.integers(1, 40_000))


def test_costs_come_from_the_profiles():
    assert looked_up() == llama_costs()


@pytest.mark.parametrize(
    ("prompt", "output", "shared", "printed"), [(804, 2, 0.8646, 54.91), (2508, 23, 0.01, 33.2)], ids=["MMLU", "Azure"]
)
def test_printed_densities_at_the_mean_lengths(prompt, output, shared, printed):
    ours = total_density([prompt], [output], llama_costs(), shared)
    assert ours == pytest.approx(printed, rel=0.05)


@pytest.mark.parametrize(
    ("name", "tp", "relative"),
    [
        ("llama-3-70b", 8, 3.51), ("qwen2.5-7b", 1, 2.17), ("llama-2-7b", 1, 0.21), ("qwen2.5-72b", 8, 3.62),
        ("deepseek-67b", 8, 2.83),
    ],
)  # fmt: skip
def test_densities_of_other_models_over_llama_3_8b(name, tp, relative):
    """The notes' last column: densities scale as parameters over KV bytes."""
    costs = costs_of(model(name), accelerator("a100-80gb-sxm"), tp)
    assert costs.balance / llama_costs().balance == pytest.approx(relative, rel=0.02 if relative > 1 else 0.03)


def test_dropped_attention_is_as_small_as_the_notes_say():
    costs = llama_costs()
    for prompt, output, share in ((244, 27, 0.007), (804, 2, 0.026), (2508, 23, 0.081)):
        with_it = request_density(prompt, output, costs, Density(attention=True))
        without = request_density(prompt, output, costs)
        assert with_it / without - 1 == pytest.approx(share, abs=0.0005)


def test_weight_reads_lengthen_memory_by_weights_over_pool():
    costs = llama_costs()
    ratio = request_density(244, 27, costs) / request_density(244, 27, costs, Density(weights=True))
    assert ratio == pytest.approx(1 + 16.060522496 / 60)


@given(LENGTHS)
def test_a_steady_batch_has_the_density_of_its_requests(lengths):
    costs = llama_costs()
    batch = steady_batch(*lengths, costs)
    assert batch.density == pytest.approx(float(request_density(*lengths, costs)), rel=1e-12)
    assert batch.memory_s == pytest.approx(60e9 / 2.039e12, rel=1e-12)


@given(st.lists(LENGTHS, min_size=1, max_size=20))
def test_a_mixed_batch_keeps_the_pool_full_only_with_the_length_biased_mean(lengths):
    prompt, output = np.array(lengths).T
    costs = llama_costs()
    biased, printed = (steady_batch(prompt, output, costs, length_biased=way) for way in (True, False))
    assert biased.density == pytest.approx(total_density(prompt, output, costs), rel=1e-9)
    assert biased.memory_s == pytest.approx(60e9 / 2.039e12, rel=1e-12)
    assert printed.memory_s / biased.memory_s == pytest.approx(
        (prompt * output + output**2 / 2).sum() / output.sum() / (prompt.mean() + output.mean() / 2)
    )


def test_the_printed_mean_lets_in_twice_the_videos():
    """For exponential outputs far longer than prompts the mean in flight is E[d^2] / (2 E[d]) = E[d], not E[d] / 2."""
    output = np.random.default_rng(1).exponential(16_000, 200_000) + 1
    prompt = np.full(output.size, 121)
    costs = llama_costs()
    printed, biased = (steady_batch(prompt, output, costs, length_biased=way) for way in (False, True))
    assert printed.decodes / biased.decodes == pytest.approx(2.0, rel=0.03)


def test_the_worked_memory_split():
    """Fig 6: 80 GB less 20 GB; 3.73 and 0.096 blend to 1.27. Exact by hand: 60 x 1.174 / 3.634 = 19.38."""
    left, right = memory_split(60e9, 3.73, 0.096, 1.27)
    assert (left, right) == (pytest.approx(19.38e9, abs=5e6), pytest.approx(40.62e9, abs=5e6))
    assert left * 3.73 + right * 0.096 == pytest.approx(60e9 * 1.27)


@pytest.mark.parametrize(
    ("densities", "left"), [((2.0, 2.0, 1.0), 30.0), ((3.0, 2.0, 1.0), 0.0), ((0.5, 0.2, 1.0), 60.0)]
)
def test_a_split_that_cannot_blend(densities, left):
    assert memory_split(60.0, *densities) == (left, 60.0 - left)


def test_attention_estimates_of_table_1():
    """A layer reads batch x 1024 x 4096 bytes at 0.85 of 2.039 TB/s."""
    costs = llama_costs().at(1.0, 0.85)
    for batch, printed in ((512, 1.239e-3), (768, 1.859e-3), (1024, 2.478e-3)):
        assert batch * 1024 * costs.kv_token_s / 32 == pytest.approx(printed, rel=1e-3)


def test_nanoflow_table_2():
    """LLaMA-2-70B on 8 A100 at a dense batch of 2048: estimated 112.33 ms of products, 31.33 ms of network."""
    shape = model("llama-2-70b")
    costs = costs_of(shape, accelerator("a100-80gb-sxm"), 8)
    products = 11.01 + 8.81 + 61.67 + 30.84
    in_layers = shape.layers * shape.layer_parameters / shape.parameters
    assert 2048 * costs.token_s * in_layers * 1e3 == pytest.approx(products, rel=2e-3)
    assert 2048 * costs.network_s_per_token * 1e3 == pytest.approx(31.33, rel=2e-3)


def test_seconds_of_a_step_by_hand():
    costs = llama_costs()
    log = np.array([[1000, 200_000, 5000, 0, 10], [5, 100, 0, 0, 5]])
    engine = Engine(costs=costs, memory_slope=0.5, compute_slope=0.25, prefill_attention=True)
    compute = 1024 * 2 * 8_030_261_248 / 312e12 + 5000 * 4 * 4096 * 32 / 312e12
    memory = 200_000 * 131_072 / 2.039e12
    weights = 16_060_522_496 / 2.039e12
    found = seconds_of(log, engine)
    assert found.compute_s == pytest.approx([compute, weights])
    assert found.memory_s == pytest.approx([memory, 100 * 131_072 / 2.039e12])
    assert found.step_s[0] == pytest.approx(max(compute + 0.5 * memory, memory + 0.25 * compute))


def test_network_behind_or_beneath_the_rest():
    costs = llama_costs(network_s_per_token=1e-4)
    log = np.array([[128, 100, 0, 0, 1]])
    beneath, behind = (seconds_of(log, Engine(costs=costs, network_hidden=way)) for way in (True, False))
    assert beneath.step_s[0] == pytest.approx(0.0128)
    assert behind.step_s[0] == pytest.approx(0.0128 + float(beneath.compute_s[0] + 0.5 * beneath.memory_s[0]))


def test_a_group_that_cannot_be():
    with pytest.raises(InputError, match="does not divide the 4 KV heads"):
        costs_of(model("qwen2.5-7b"), accelerator("a100-80gb-sxm"), 8)
    with pytest.raises(InputError, match="leaves no KV memory"):
        costs_of(model("llama-3-70b"), accelerator("a100-80gb-sxm"), 1)


@pytest.mark.parametrize("about", [request_density, total_density, steady_batch])
@pytest.mark.parametrize(
    ("prompt", "output", "words"),
    [
        (-1, 1, "'prompt': holds -1"), (np.nan, 1, "'prompt': holds nan"), (1, 0, "'output': holds 0"),
        ([], [], "'prompt': is empty"), ([1, 2, 3], [1, 2], "2 numbers for 3 prompts"), ("a", 1, "no number"),
    ],
)  # fmt: skip
def test_lengths_that_cannot_be(about, prompt, output, words):
    with pytest.raises(InputError, match=words):
        about(prompt, output, llama_costs())


def test_shares_and_pools_that_cannot_be():
    for shared in (-0.1, 1.1, np.nan):
        with pytest.raises(InputError, match="'shared': is"):
            total_density([1], [1], llama_costs(), shared)
    for held in (np.nan, -1.0, 0.0, np.inf):
        with pytest.raises(InputError, match="'pool_bytes': is"):
            costs_of(model("llama-3-8b"), accelerator("a100-80gb-sxm"), pool_bytes=held)
