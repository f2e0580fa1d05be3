"""A Hugging Face config.json gives the model it describes, or one sentence naming the field."""

import json

import pytest

from workbench.errors import InputError
from workbench.profiles import model

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
QWEN2 = LLAMA | {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
}

# Totals of the published checkpoints; the fields are those of their configs.
PUBLISHED = {
    "llama-3-8b": (LLAMA, 8_030_261_248),
    "qwen2.5-7b": (QWEN2 | {"use_sliding_window": False, "sliding_window": 131072}, 7_615_616_512),
    "qwen2.5-0.5b, tied": (
        QWEN2
        | {
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_attention_heads": 14,
            "num_hidden_layers": 24,
            "num_key_value_heads": 2,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        494_032_768,
    ),
    "qwen3-32b": (
        LLAMA
        | {
            "model_type": "qwen3",
            "attention_bias": False,
            "head_dim": 128,
            "hidden_size": 5120,
            "intermediate_size": 25600,
            "num_attention_heads": 64,
            "num_hidden_layers": 64,
            "vocab_size": 151936,
        },
        32_762_123_264,
    ),
    "mistral-small-24b": (
        LLAMA
        | {
            "model_type": "mistral",
            "head_dim": 128,
            "hidden_size": 5120,
            "intermediate_size": 32768,
            "num_hidden_layers": 40,
            "sliding_window": None,
            "vocab_size": 131072,
        },
        23_572_403_200,
    ),
    "internlm2.5-7b": (LLAMA | {"model_type": "internlm2", "bias": False, "vocab_size": 92544}, 7_737_708_544),
    "opt-125m": (
        {
            "model_type": "opt",
            "do_layer_norm_before": True,
            "ffn_dim": 3072,
            "hidden_size": 768,
            "max_position_embeddings": 2048,
            "num_attention_heads": 12,
            "num_hidden_layers": 12,
            "torch_dtype": "float16",
            "vocab_size": 50272,
            "word_embed_proj_dim": 768,
        },
        125_239_296,
    ),
    "bloom": (
        {
            "model_type": "bloom",
            "n_embed": 14336,
            "n_layer": 70,
            "num_attention_heads": 112,
            "seq_length": 2048,
            "vocab_size": 250880,
        },
        176_247_271_424,
    ),
    "pythia-70m": (
        {
            "model_type": "gpt_neox",
            "hidden_size": 512,
            "intermediate_size": 2048,
            "max_position_embeddings": 2048,
            "num_attention_heads": 8,
            "num_hidden_layers": 6,
            "tie_word_embeddings": False,
            "torch_dtype": "float16",
            "vocab_size": 50304,
        },
        70_426_624,
    ),
}
FALCON = {
    "model_type": "falcon",
    "bias": False,
    "hidden_size": 4544,
    "multi_query": True,
    "new_decoder_architecture": False,
    "num_attention_heads": 71,
    "num_hidden_layers": 32,
    "parallel_attn": True,
    "torch_dtype": "bfloat16",
    "vocab_size": 65024,
}


def saved(tmp_path, fields, name="config.json"):
    path = tmp_path / name
    path.write_text(fields if isinstance(fields, str) else json.dumps(fields))
    return path


@pytest.mark.parametrize(("fields", "total"), PUBLISHED.values(), ids=PUBLISHED)
def test_a_published_config_gives_the_published_total(tmp_path, fields, total):
    one = model(saved(tmp_path, fields))
    assert one.parameters == total
    assert one.name == tmp_path.name
    assert one.status == "user"


def test_configs_and_our_own_files_describe_the_same_models(tmp_path):
    forty = {
        "hidden_size": 8192,
        "num_attention_heads": 128,
        "num_hidden_layers": 60,
        "new_decoder_architecture": True,
        "num_kv_heads": 8,
    }
    for fields, name in ((FALCON, "falcon-7b"), (FALCON | forty, "falcon-40b"), (LLAMA, "llama-3-8b")):
        one, known = model(saved(tmp_path, fields)), model(name)
        assert one.parameters == known.parameters
        assert one.kv_bytes_per_token == known.kv_bytes_per_token
        assert one.block_bytes(4) == known.block_bytes(4)


def test_what_a_config_leaves_out(tmp_path):
    absent = {"num_key_value_heads", "torch_dtype", "model_type"}
    bare = {key: value for key, value in LLAMA.items() if key not in absent}
    one = model(saved(tmp_path, bare, "mine.json"))
    assert (one.name, one.family, one.kv_heads, one.head_dim, one.weight_dtype) == ("mine", "llama", 32, 128, "bf16")
    assert "bf16 is assumed" in one.note
    windowed = model(saved(tmp_path, LLAMA | {"model_type": "mistral", "sliding_window": 4096}))
    assert "4096 tokens" in windowed.note
    biased = model(saved(tmp_path, LLAMA | {"attention_bias": True, "dtype": "float32", "torch_dtype": None}))
    assert biased.layer_parameters == model("llama-3-8b").layer_parameters + 4096 + 2 * 1024 + 4096
    assert biased.activation_bytes_per_token == 4 * 4096


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            LLAMA | {"model_type": "mamba2"},
            "field 'model_type': is 'mamba2', which is not supported; supported are llama",
        ),
        (LLAMA | {"model_type": ["llama"]}, "field 'model_type'"),
        ({"hidden_size": 4}, "field 'model_type': is missing"),
        (LLAMA | {"num_local_experts": 8}, "field 'num_local_experts': makes this a mixture of 8 experts"),
        (LLAMA | {"n_routed_experts": 256, "kv_lora_rank": 512}, "field 'n_routed_experts'"),
        (LLAMA | {"kv_lora_rank": 512}, "field 'kv_lora_rank': makes this a latent-attention"),
        (LLAMA | {"quantization_config": {"bits": 4}}, "field 'quantization_config': says the weights are quantised"),
        ({"model_type": "llava", "text_config": LLAMA}, "field 'text_config': makes this a multimodal model"),
        (LLAMA | {"hidden_size": None}, "field 'hidden_size': is missing; add hidden_size"),
        (LLAMA | {"hidden_size": "4096"}, "field 'hidden_size': is '4096'"),
        (LLAMA | {"hidden_size": -4096}, "field 'hidden_size': is -4096"),
        (LLAMA | {"num_hidden_layers": True}, "field 'num_hidden_layers': is True"),
        (LLAMA | {"num_attention_heads": 33}, "field 'head_dim': is missing and 4096 does not divide among 33"),
        (LLAMA | {"num_key_value_heads": 5}, "32 heads do not divide among 5 kv_heads"),
        (LLAMA | {"torch_dtype": "float8_e4m3fn"}, "field 'torch_dtype': is 'float8_e4m3fn'; use one of float16"),
        (LLAMA | {"tie_word_embeddings": "no"}, "field 'tie_word_embeddings': is 'no'"),
        (PUBLISHED["opt-125m"][0] | {"word_embed_proj_dim": 512}, "field 'word_embed_proj_dim': is 512"),
        (PUBLISHED["opt-125m"][0] | {"do_layer_norm_before": False}, "field 'do_layer_norm_before'"),
        ("[1, 2]", "holds no JSON object"),
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("", "is not valid JSON"),
    ],
)
def test_what_cannot_be_loaded_says_which_field(tmp_path, fields, message):
    path = saved(tmp_path, fields)
    with pytest.raises(InputError, match=message) as caught:
        model(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_config_says_so(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        model(tmp_path / "config.json")
