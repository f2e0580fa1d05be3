"""Load a model's shape from the config.json of a Hugging Face checkpoint."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.profiles.checking import build
from workbench.profiles.model_record import Model
from workbench.profiles.toml_reading import stat_input

_LARGEST_BYTES = 4 << 20
_EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "half": "fp16", "float": "fp32"}
_ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "InternLM2ForCausalLM": "internlm2",
    "OPTForCausalLM": "opt",
    "BloomForCausalLM": "bloom",
    "FalconForCausalLM": "falcon",
    "GPTNeoXForCausalLM": "gpt_neox",
}


class _Config:
    """A parsed config.json that names itself and the field in every complaint."""

    def __init__(self, path: Path, fields: dict[str, Any]):
        self.path, self.fields = path, fields

    def refuse(self, field: str, problem: str, remedy: str) -> InputError:
        return InputError(problem, remedy, file=self.path, field=field)

    def count(self, *names: str, default: int | None = None) -> int:
        for name in names:
            value = self.fields.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise self.refuse(name, f"is {value!r:.40}", "it must be a whole number of 1 or more")
            return value
        if default is None:
            raise self.refuse(names[0], "is missing", f"add {names[0]}")
        return default

    def flag(self, name: str, default: bool) -> bool:
        value = self.fields.get(name, default)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(name, f"is {value!r:.40}", "it must be true or false")
        return value


def model_from_config(path: str | Path) -> Model:
    """The model that a Hugging Face `config.json` describes.

    Supported: llama (also Yi and DeepSeek LLM), mistral, qwen2, qwen3, internlm2, opt, bloom, falcon, gpt_neox. What
    the file leaves out takes the default of that architecture's configuration class.

    Parameters:
        path: the file.

    Raises:
        InputError: not JSON, an unknown architecture, a mixture of experts, latent attention, quantised weights, or a
            missing field, each by name.
    """
    path = Path(path)
    config = _Config(path, _read(path))
    _refuse_unsupported(config)
    family = _family(config)
    shape = _READERS[family](config)
    dtype, note = _dtype(config)
    if config.fields.get("sliding_window") and config.flag("use_sliding_window", family == "mistral"):
        window = config.count("sliding_window")
        note = f"{note} Attention slides over {window} tokens; the KV cache is counted in full."
    name = path.parent.name if path.stem == "config" and path.parent.name else path.stem
    return build(
        Model,
        {
            "name": name,
            "label": str(config.fields.get("_name_or_path") or name),
            "family": family,
            **shape,
            "weight_dtype": dtype,
            "kv_dtype": dtype,
            "status": "user",
            "source": str(path),
            "note": note.strip(),
        },
        file=path,
    )


def _read(path: Path) -> dict[str, Any]:
    stat_input(path, _LARGEST_BYTES)
    try:
        fields = json.loads(path.read_bytes())
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"is not valid JSON ({error})", "give the config.json of a checkpoint", file=path) from None
    if not isinstance(fields, dict):
        raise InputError("holds no JSON object", "give the config.json of a checkpoint", file=path)
    return fields


def _refuse_unsupported(config: _Config) -> None:
    for field in _EXPERTS:
        value = config.fields.get(field)
        if isinstance(value, int) and value > 1:
            raise config.refuse(field, f"makes this a mixture of {value} experts", "choose a dense model")
    if config.fields.get("kv_lora_rank"):
        raise config.refuse("kv_lora_rank", "makes this a latent-attention (MLA) model", "choose a model without it")
    if config.fields.get("quantization_config") or config.fields.get("quantization"):
        field = "quantization_config" if config.fields.get("quantization_config") else "quantization"
        raise config.refuse(
            field, "says the weights are quantised", "remove it for 16-bit sizes, then use model.with_dtype(...)"
        )
    if isinstance(config.fields.get("text_config"), dict):
        raise config.refuse("text_config", "makes this a multimodal model", "save its text_config as a file of its own")
    if config.fields.get("is_encoder_decoder") is True:
        raise config.refuse("is_encoder_decoder", "is true", "choose a decoder-only model")


def _family(config: _Config) -> str:
    family = config.fields.get("model_type")
    if family is None:
        architectures = config.fields.get("architectures")
        first = architectures[0] if isinstance(architectures, list) and architectures else None
        family = _ARCHITECTURES.get(first) if isinstance(first, str) else None
        if family is None:
            raise config.refuse("model_type", "is missing", f"add one of {', '.join(_READERS)}")
    if not isinstance(family, str) or family not in _READERS:
        raise config.refuse(
            "model_type", f"is {family!r:.40}, which is not supported", f"supported are {', '.join(_READERS)}"
        )
    return family


def _dtype(config: _Config) -> tuple[str, str]:
    field = "torch_dtype" if config.fields.get("torch_dtype") is not None else "dtype"
    name = config.fields.get(field)
    if name is None:
        return "bf16", "The file states no torch_dtype; bf16 is assumed."
    if not isinstance(name, str) or name not in _DTYPES:
        raise config.refuse(field, f"is {name!r:.40}", f"use one of {', '.join(_DTYPES)}")
    return _DTYPES[name], ""


def _common(config: _Config, *, tied: bool, context: int) -> dict[str, Any]:
    hidden = config.count("hidden_size", "n_embed")
    heads = config.count("num_attention_heads", "n_head")
    if not config.fields.get("head_dim") and hidden % heads:
        raise config.refuse("head_dim", f"is missing and {hidden} does not divide among {heads} heads", "add head_dim")
    return {
        "layers": config.count("num_hidden_layers", "n_layer"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": config.count("head_dim", default=max(1, hidden // heads)),
        "vocab": config.count("vocab_size"),
        "max_context": config.count("max_position_embeddings", "seq_length", default=context),
        "tied_embeddings": config.flag("tie_word_embeddings", tied),
    }


def _llama_like(config: _Config, *, context: int, kv_heads: int | None = None, **biases: bool) -> dict[str, Any]:
    shape = _common(config, tied=False, context=context)
    shape["kv_heads"] = config.count("num_key_value_heads", default=kv_heads or shape["heads"])
    return shape | {"intermediate": config.count("intermediate_size"), **biases}


def _llama(config: _Config) -> dict[str, Any]:
    attention = config.flag("attention_bias", False)
    biases = {"qkv_bias": attention, "output_bias": attention, "ffn_bias": config.flag("mlp_bias", False)}
    return _llama_like(config, context=2048, **biases)


def _mistral(config: _Config) -> dict[str, Any]:
    return _llama_like(config, context=131072, kv_heads=8)


def _qwen2(config: _Config) -> dict[str, Any]:
    return _llama_like(config, context=32768, kv_heads=32, qkv_bias=True)


def _qwen3(config: _Config) -> dict[str, Any]:
    bias = config.flag("attention_bias", False)
    shape = _llama_like(config, context=32768, kv_heads=32, qkv_bias=bias, output_bias=bias, qk_norm=True)
    return shape | {"head_dim": config.count("head_dim", default=128)}


def _internlm2(config: _Config) -> dict[str, Any]:
    bias = config.flag("bias", True)
    return _llama_like(config, context=2048, qkv_bias=bias, output_bias=bias)


def _opt(config: _Config) -> dict[str, Any]:
    shape = _common(config, tied=True, context=2048)
    projected = config.count("word_embed_proj_dim", default=shape["hidden"])
    if projected != shape["hidden"]:
        raise config.refuse(
            "word_embed_proj_dim", f"is {projected}, not the hidden size {shape['hidden']}", "choose another OPT model"
        )
    if not config.flag("do_layer_norm_before", True):
        raise config.refuse("do_layer_norm_before", "is false", "choose an OPT model with pre-normalisation")
    bias = config.flag("enable_bias", True)
    return shape | {
        "intermediate": config.count("ffn_dim"),
        "learned_positions": shape["max_context"] + 2,  # the table has two rows in front that are never used
        **_classic(bias),
    }


def _bloom(config: _Config) -> dict[str, Any]:
    shape = _common(config, tied=True, context=2048)
    return shape | {"intermediate": 4 * shape["hidden"], "embedding_norm": True, **_classic(True)}


def _falcon(config: _Config) -> dict[str, Any]:
    shape = _common(config, tied=True, context=2048)
    parallel = config.flag("parallel_attn", True)
    if config.flag("new_decoder_architecture", False):
        norms = config.count("num_ln_in_parallel_attn", default=2)
        kv_heads = config.count("num_kv_heads", default=shape["heads"])
    else:
        norms = 1 if parallel else 2
        kv_heads = 1 if config.flag("multi_query", True) else shape["heads"]
    return shape | {
        "kv_heads": kv_heads,
        "intermediate": config.count("ffn_hidden_size", default=4 * shape["hidden"]),
        "norms_per_layer": norms,
        **_classic(config.flag("bias", False)),
    }


def _gpt_neox(config: _Config) -> dict[str, Any]:
    shape = _common(config, tied=False, context=2048)
    shape |= {"intermediate": config.count("intermediate_size"), **_classic(True)}
    attention = config.flag("attention_bias", True)
    return shape | {"qkv_bias": attention, "output_bias": attention}


def _classic(bias: bool) -> dict[str, Any]:
    """What the families before Llama share: two feed-forward matrices and LayerNorm, with or without biases."""
    return {"gated_ffn": False, "norm": "layernorm", "qkv_bias": bias, "output_bias": bias, "ffn_bias": bias}


_READERS: dict[str, Callable[[_Config], dict[str, Any]]] = {
    "llama": _llama,
    "mistral": _mistral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "internlm2": _internlm2,
    "opt": _opt,
    "bloom": _bloom,
    "falcon": _falcon,
    "gpt_neox": _gpt_neox,
}
