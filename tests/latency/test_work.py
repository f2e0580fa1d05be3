"""What a step computes and moves, against the sizes of the notes on data §8 and counts by hand."""

import pytest

from workbench.errors import UserError
from workbench.latency import step_time, work_of
from workbench.profiles import deployment, model


def test_llama_2_7b_by_hand():
    work = work_of(model("llama-2-7b"))
    # 4 x 4096² for attention, 3 x 4096 x 11008 for the feed-forward network: 202,375,168 weights a layer.
    assert sum(matrix.weight_bytes for matrix in work.matrices) == 2 * 202_375_168
    assert work.weight_bytes == 2 * (32 * 202_375_168 + 32_000 * 4096)
    assert work.flops_per_token == 2 * 32 * 202_375_168
    assert work.pair_flops == 4 * 32 * 4096
    assert work.message_bytes_per_token == 0


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("llama-2-7b", 524_288),
        ("llama-3-8b", 131_072),
        ("llama-2-70b", 327_680),
        ("qwen2.5-7b", 57_344),
        ("qwen2.5-72b", 327_680),
        ("mistral-small-24b-2501", 163_840),
        ("bloom-176b", 4_014_080),
        ("falcon-7b", 8_192),
    ],
)
def test_only_kv_heads_count_in_the_cache(name, kv_bytes):
    """Notes on data §8: 2 x layers x KV heads x head width x 2 bytes; query heads do not enter."""
    assert work_of(model(name)).context_bytes == kv_bytes


def test_tensor_parallelism_divides_matrices_cache_and_attention():
    whole, share = work_of(model("llama-2-70b")), work_of(model("llama-2-70b"), 8)
    assert share.weight_bytes == whole.weight_bytes / 8
    assert share.context_bytes == whole.context_bytes / 8
    assert share.pair_flops == whole.pair_flops / 8
    assert share.kv_heads == 1
    # Two all-reduces a layer of the hidden state in 16 bits.
    assert share.message_bytes_per_token == 2 * 2 * 8192
    # Norms and residual sums stay whole on every accelerator.
    assert whole.elementwise_bytes_per_token / 8 < share.elementwise_bytes_per_token < whole.elementwise_bytes_per_token


def test_narrow_weights_are_smaller_and_activations_are_not():
    wide, narrow = work_of(model("llama-3-8b")), work_of(model("llama-3-8b").with_dtype("int4"))
    assert narrow.weight_bytes == wide.weight_bytes / 4
    assert narrow.elementwise_bytes_per_token == wide.elementwise_bytes_per_token
    assert narrow.context_bytes == wide.context_bytes
    assert work_of(model("llama-3-8b").with_dtype(kv="fp8")).context_bytes == wide.context_bytes / 2


@pytest.mark.parametrize(
    ("name", "tp", "sentence"),
    [
        ("deepseek-v3", 8, "it is a mixture-of-experts model (671 billion parameters, 37 billion of them active)"),
        ("deepseek-v2", 1, "it is a mixture-of-experts model"),
        ("llama-3-8b", 3, "has 32 attention heads, which TP 3 does not divide (32 = 10 x 3 + 2)"),
        ("llama-3-8b", 16, "has 8 KV heads, which TP 16 does not divide (8 = 0 x 16 + 8)"),
        ("qwen2.5-7b", 8, "has 28 attention heads, which TP 8 does not divide (28 = 3 x 8 + 4)"),
        ("falcon-7b", 71, "has 1 KV heads, which TP 71 does not divide"),
    ],
)
def test_what_is_not_modelled_is_refused_with_the_arithmetic(name, tp, sentence):
    with pytest.raises(UserError) as caught:
        step_time(name, "b200", deployment(tp=tp))
    assert sentence in str(caught.value)
    assert str(caught.value).count(". ") == 0


def test_a_model_that_does_not_fit_is_refused_with_the_arithmetic():
    with pytest.raises(UserError, match=r"137\.95 GB of weights / TP 1 = 137\.95 GB each, but 0\.9 x 80\.00 GB"):
        step_time("llama-2-70b", "a100")


def test_more_accelerators_than_a_host_has_are_refused():
    with pytest.raises(UserError, match="TP 16 spans more than the 8 accelerators of a host"):
        step_time("bloom-176b", "a100", deployment(tp=16))
