"""Sizes of models against published totals and the tables of the papers' notes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError, UnknownName, UserError
from workbench.profiles import Model, model, models
from workbench.profiles.dtypes import BITS
from workbench.profiles.naming import names_in

NAMES = names_in("models")
DENSE = [name for name in NAMES if model(name).dense]

# Totals of the published checkpoints (safetensors index or GGUF header).
PUBLISHED = {
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "codellama-34b": 33_743_970_304,
    "yi-34b": 34_388_917_248,
    "yi-1.5-6b": 6_061_035_520,
    "yi-1.5-9b": 8_829_407_232,
    "internlm2.5-7b": 7_737_708_544,
    "qwen-7b": 7_721_324_544,
    "qwen-72b": 72_287_920_128,
    "qwen1.5-14b": 14_167_290_880,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-32b": 32_762_123_264,
    "mistral-7b-v0.1": 7_241_732_096,
    "mistral-small-24b-2501": 23_572_403_200,
    "bloom-176b": 176_247_271_424,
}


@pytest.mark.parametrize(("name", "total"), PUBLISHED.items())
def test_the_shape_gives_the_published_total(name, total):
    assert model(name).parameters == total


@pytest.mark.parametrize("name", DENSE)
def test_a_published_total_in_a_file_is_what_its_shape_gives(name):
    one = model(name)
    if one.published_parameters is not None:
        assert one.parameters == one.published_parameters.value


# λScale notes §4: block bytes first / middle / last of 8 blocks, layer bytes, KV bytes per token, hidden-state bytes.
@pytest.mark.parametrize(
    ("name", "first", "middle", "last", "layer", "kv", "activation"),
    [
        ("llama-2-7b", 1_881_210_880, 1_619_066_880, 1_881_219_072, 404_766_720, 524_288, 8_192),
        ("llama-2-13b", 3_499_724_800, 3_172_044_800, 3_499_735_040, 634_408_960, 819_200, 10_240),
        ("llama-2-70b", 17_637_376_000, 17_113_088_000, 17_637_392_384, 1_711_308_800, 327_680, 16_384),
    ],
)
def test_lambdascale_blocks(name, first, middle, last, layer, kv, activation):
    one = model(name)
    assert one.block_bytes(8) == (first, *(middle,) * 6, last)
    assert one.layer_bytes == layer
    assert one.kv_bytes_per_token == kv
    assert one.activation_bytes_per_token == activation


# BlitzScale notes §4: fp16 GB, GB per layer, KV bytes per token.
@pytest.mark.parametrize(
    ("name", "gb", "layer_gb", "kv"),
    [
        ("llama-2-7b", 13.48, 0.405, 524_288),
        ("llama-3-8b", 16.06, 0.436, 131_072),
        ("mistral-small-24b", 47.14, 1.112, 163_840),
        ("qwen2.5-72b", 145.4, 1.755, 327_680),
    ],
)
def test_blitzscale_table(name, gb, layer_gb, kv):
    one = model(name)
    assert one.weight_bytes / 1e9 == pytest.approx(gb, rel=5e-4)
    assert one.layer_bytes / 1e9 == pytest.approx(layer_gb, rel=2e-3)
    assert one.kv_bytes_per_token == kv


# Aegaeon notes §4: KV bytes per token and MiB of a block of 16 tokens.
@pytest.mark.parametrize(
    ("name", "kv", "block_mib"),
    [
        ("qwen2.5-7b", 57_344, 0.875),
        ("yi-1.5-6b", 65_536, 1.0),
        ("yi-1.5-9b", 98_304, 1.5),
        ("internlm2.5-7b", 131_072, 2.0),
        ("qwen-7b", 524_288, 8.0),
        ("llama-2-7b", 524_288, 8.0),
        ("llama-2-13b", 819_200, 12.5),
        ("qwen1.5-14b", 819_200, 12.5),
        ("qwen2.5-72b", 327_680, 5.0),
        ("qwen-72b", 2_621_440, 40.0),
    ],
)
def test_aegaeon_cache_table(name, kv, block_mib):
    assert model(name).kv_bytes_per_token == kv
    assert 16 * model(name).kv_bytes_per_token / 2**20 == block_mib


# BlendServe notes §4: parameters, and density relative to Llama-3-8B (parameters over KV width x layers).
@pytest.mark.parametrize(
    ("name", "billions", "density"),
    [
        ("llama-3-8b", 8.030, 1.0),
        ("llama-3-70b", 70.55, 3.51),
        ("qwen2.5-7b", 7.615, 2.17),
        ("llama-2-7b", 6.738, 0.21),
        ("qwen2.5-72b", 72.70, 3.62),
        ("deepseek-67b", 67.42, 2.83),
    ],
)
def test_blendserve_table(name, billions, density):
    one, base = model(name), model("llama-3-8b")
    assert one.parameters / 1e9 == pytest.approx(billions, rel=2e-4)
    ours = (one.parameters / one.kv_bytes_per_token) / (base.parameters / base.kv_bytes_per_token)
    assert ours == pytest.approx(density, abs=5e-3)


def test_server_chains_block_sizes():
    # Server chains notes §4: s_m of BLOOM in NF4 with 1 % on top, exact s_c for 2,048 tokens, LLaMA-2-7B by counting.
    bloom = model("bloom-176b")
    assert bloom.with_dtype("nf4").layer_bytes * 1.01 == pytest.approx(1.3234e9, rel=1e-4)
    assert bloom.kv_bytes_per_token_per_layer * 2048 == 117_440_512
    llama = model("llama-2-7b")
    assert llama.layer_parameters == 202_383_360
    assert llama.kv_bytes_per_token_per_layer * 2048 == 33_554_432
    assert float(llama.override("server-chains-scripts", "layer_bytes")) == 0.4375e9
    assert float(bloom.override("server-chains", "job_cache_layer_bytes")) == 0.11e9


def test_a_papers_own_figure_is_an_override_and_never_the_size():
    big = model("qwen2.5-72b")
    assert float(big.override("blitzscale", "weight_bytes")) == 144e9
    assert big.weight_bytes == 2 * 72_706_203_648
    # Aegaeon's artifact counts parameters in multiples of 2^30.
    assert float(model("yi-1.5-9b").override("aegaeon-artifact", "parameters")) == 8.25 * 2**30


def test_latent_attention_and_experts_use_published_totals():
    # Data guide §8: DeepSeek-V2 236 (21 active) billion, 69,120 bytes; V3 671 (37), fp8, 70,272 bytes.
    v2, v3 = model("deepseek-v2"), model("deepseek-r1")
    assert (v2.parameters, v2.active_parameters, v2.weight_bytes) == (236e9, 21e9, 472e9)
    assert v2.kv_bytes_per_token == 69_120
    assert (v3.parameters, v3.active_parameters, v3.weight_bytes) == (671e9, 37e9, 671e9)
    assert v3.kv_bytes_per_token == 70_272
    with pytest.raises(UserError, match="mixture-of-experts"):
        v3.block_bytes(8)


@given(name=st.sampled_from(DENSE), dtype=st.sampled_from(sorted(BITS)), data=st.data())
def test_blocks_add_up_to_the_weights(name, dtype, data):
    one = model(name).with_dtype(dtype)
    blocks = data.draw(st.integers(1, one.layers))
    sizes, layers = one.block_bytes(blocks), one.block_layers(blocks)
    assert len(sizes) == len(layers) == blocks
    assert sum(sizes) == one.weight_bytes
    assert sum(layers) == one.layers
    assert max(layers) - min(layers) <= 1
    assert min(sizes) > 0


@pytest.mark.parametrize("blocks", [0, -1, 33, 2.0, True, "8"])
def test_impossible_block_counts_are_refused(blocks):
    with pytest.raises(InputError, match="choose 1 to 32 blocks"):
        model("llama-2-7b").block_bytes(blocks)


def test_number_formats():
    one = model("llama-2-7b")
    assert one.with_dtype("int4", "fp8").weight_bytes == one.weight_bytes / 4
    assert one.with_dtype("int4", "fp8").kv_bytes_per_token == one.kv_bytes_per_token / 2
    assert one.with_dtype() == one
    with pytest.raises(UnknownName, match="fp16"):
        one.with_dtype("fp61")


def test_shapes_and_sizes_of_the_shared_table(shared_profiles):
    names = {"Llama-3-8B / 3.1-8B": "llama-3-8b", "Llama-3-70B / 3.1-70B": "llama-3-70b"}
    rows = json.loads((shared_profiles / "models.json").read_text())["models"]
    assert len(rows) == 23
    for row in rows:
        known = names.get(row["name"], row["name"].split(" (")[0].split(" / ")[0].lower())
        one = model(known)
        for field in ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim", "vocab"):
            assert getattr(one, field) == row[field], (known, field)
        assert one.parameters == row["params"], known
        assert one.kv_bytes_per_token == row["kv_bytes_per_token_bf16"], known
        if row["params_per_layer"]:
            assert one.layer_parameters == row["params_per_layer"], known


def test_the_table_names_a_source_for_every_model():
    table = models()
    assert table["name"].to_list() == NAMES
    assert table["shape_source"].null_count() == table["parameters_source"].null_count() == 0
    assert table["shape_source"].str.starts_with("published: ").all()


def test_names_are_found_by_alias_and_in_any_case():
    assert model("Qwen-2.5-72B").name == model("qwen2.5-72b-instruct").name == "qwen2.5-72b"
    assert model(model("yi-34b")) is model("yi-34b") or model(model("yi-34b")) == model("yi-34b")
    with pytest.raises(UnknownName, match=r"llama-2-7b"):
        model("llama-2-8b")


def test_a_model_is_a_frozen_value():
    one = model("llama-2-7b")
    assert hash(one) == hash(Model.model_validate(one.model_dump()))
    with pytest.raises(ValueError, match="frozen"):
        one.layers = 3
