"""Models by name, from the user's own TOML file, or from a Hugging Face config.json."""

from pathlib import Path
from typing import Any

import polars as pl

from workbench.profiles.checking import build
from workbench.profiles.huggingface_config import model_from_config
from workbench.profiles.model_record import Model
from workbench.profiles.naming import file_of, looks_like_path, names_in
from workbench.profiles.toml_reading import read_toml, sources_in


def model(name_or_path: str | Path | Model) -> Model:
    """How large a model is: its shape, and every size that follows from it.

    Parameters:
        name_or_path: a name of `models()` or an alias, the path of a TOML file, or the path of a `config.json` as
            Hugging Face checkpoints carry it, or of its folder (dense decoder-only architectures).

    Raises:
        UnknownName, InputError: no such name; a file that cannot be used, with file, field and remedy.

    >>> llama = model("llama-2-7b")
    >>> llama.parameters, llama.block_bytes(8)[0], llama.kv_bytes_per_token
    (6738415616, 1881210880, 524288)
    """
    if isinstance(name_or_path, Model):
        return name_or_path
    if not looks_like_path(name_or_path):
        path = file_of("model", "models", name_or_path)
    else:
        path = Path(name_or_path)
        if path.is_dir() and (path / "config.json").is_file():
            path = path / "config.json"
        if path.suffix == ".json":
            return model_from_config(path)
    tables = read_toml(path)
    data = {key: value for key, value in tables.items() if key != "sources"}
    sources = sources_in(tables, path)
    if isinstance(data.get("source"), str):
        data["source"] = sources.get(data["source"], data["source"])
    return build(Model, {"name": path.name.removesuffix(".toml"), **data}, file=path, sources=sources)


def models() -> pl.DataFrame:
    """All models: shape and its source, parameters, and computed bytes of weights, layers and KV cache."""
    rows: list[dict[str, Any]] = []
    for name in names_in("models"):
        one = model(name)
        published = one.published_parameters
        rows.append(
            {
                "name": one.name,
                "label": one.label,
                "family": one.family,
                "layers": one.layers,
                "hidden": one.hidden,
                "intermediate": one.intermediate,
                "heads": one.heads,
                "kv_heads": one.kv_heads,
                "head_dim": one.head_dim,
                "vocab": one.vocab,
                "weight_dtype": one.weight_dtype,
                "kv_dtype": one.kv_dtype,
                "parameters": one.parameters,
                "active_parameters": one.active_parameters,
                "weight_bytes": one.weight_bytes,
                "layer_bytes": one.layer_bytes if one.dense else None,
                "kv_bytes_per_token": one.kv_bytes_per_token,
                "parameters_source": "computed: from the shape" if one.dense else f"published: {published.source}",
                "shape_source": f"{one.status}: {one.source}",
                "overrides": sorted({row.preset for row in one.overrides}),
                "note": one.note,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)
