"""Accelerators by name, from the facts, from the user's own file, or from this machine's measurement."""

from pathlib import Path
from typing import Any

import polars as pl

from workbench.errors import InputError
from workbench.profiles.accelerator_record import Accelerator, Speeds
from workbench.profiles.checking import build
from workbench.profiles.local_profile import local_tables
from workbench.profiles.naming import file_of, looks_like_path, names_in
from workbench.profiles.tables import quantity_columns
from workbench.profiles.toml_reading import read_toml, sources_in

_NOMINAL_OF = {
    "flops_per_s_1024_tokens": "flops_per_s",
    "prefill_attention_flops_per_s": "flops_per_s",
    "decode_attention_bytes_per_s": "memory_bytes_per_s",
    "all_gather_bytes_per_s": "scale_up_bytes_per_s",
    "all_reduce_bytes_per_s": "scale_up_bytes_per_s",
} | {name: name for name in Speeds.model_fields}
"""Which nominal rate a fraction refers to."""


def accelerator(name_or_path: str | Path | Accelerator) -> Accelerator:
    """What one kind of accelerator can do, nominally and in practice.

    Parameters:
        name_or_path: a name of `accelerators()` or an alias, the path of a TOML file, or "local" for this machine as
            `workbench measure` found it.

    Raises:
        UnknownName, InputError: no such name; a file that cannot be used, with file, field and remedy.

    >>> h800 = accelerator("h800-80gb-sxm")
    >>> float(h800.nominal.scale_up_bytes_per_s), h800.achievable.memory_bytes_per_s.status
    (200000000000.0, 'inferred')
    """
    if isinstance(name_or_path, Accelerator):
        return name_or_path
    if name_or_path == "local":
        table, path = local_tables()
        return _built(table["accelerator"], "local", path)
    path = Path(name_or_path) if looks_like_path(name_or_path) else file_of("accelerator", "hardware", name_or_path)
    return _built(read_toml(path), path.stem, path)


def accelerators() -> pl.DataFrame:
    """All accelerators with nominal and achievable rates side by side, and a source for each number."""
    rows = []
    for name in names_in("hardware"):
        one = accelerator(name)
        row: dict[str, Any] = {"name": one.name, "label": one.label, **quantity_columns("memory_bytes", one)}
        for field in Speeds.model_fields:
            row |= quantity_columns(field, one.nominal, "nominal_")
            row |= quantity_columns(field, one.achievable, "achievable_")
        rows.append(row | {"alternates": sorted({item.preset for item in one.alternates}), "note": one.note})
    return pl.DataFrame(rows, infer_schema_length=None)


def _built(table: dict[str, Any], name: str, path: Path, waiting: tuple[str, ...] = ()) -> Accelerator:
    data = {key: value for key, value in table.items() if key != "sources"}
    sources = sources_in(table, path)
    if isinstance(data.get("achievable"), dict) and isinstance(data.get("nominal", {}), dict):
        data["achievable"] = {
            field: _achievable(field, value, data.get("nominal", {}), path, (*waiting, name))
            for field, value in data["achievable"].items()
        }
    return build(Accelerator, {"name": name, **data}, file=path, sources=sources)


def _achievable(field: str, value: Any, nominal: dict[str, Any], path: Path, waiting: tuple[str, ...]) -> Any:
    """Work out { fraction, status, source } and { like = "relative" }; anything else is left as it is."""
    if not isinstance(value, dict) or not {"fraction", "like"} & value.keys():
        return value
    place = f"achievable.{field}"
    base = nominal.get(_NOMINAL_OF.get(field, ""))
    base = base.get("value") if isinstance(base, dict) else base
    if not isinstance(base, int | float) or isinstance(base, bool):
        raise InputError("has no nominal rate to be a fraction of", "give a value", file=path, field=place)
    if "fraction" in value:
        fraction = value["fraction"]
        if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction <= 1.2:
            raise InputError(f"is the fraction {fraction!r:.40}", "give one between 0 and 1", file=path, field=place)
        rest = {key: item for key, item in value.items() if key != "fraction"}
        return {"value": base * fraction, **rest}
    relative = str(value["like"])
    if len(value) > 1:
        raise InputError("holds more than 'like'", "give only { like = NAME }", file=path, field=place)
    if relative in waiting:
        raise InputError(f"goes round in a circle over {relative}", "give a value", file=path, field=place)
    other_path = file_of("accelerator", "hardware", relative)
    other = _built(read_toml(other_path), other_path.stem, other_path, waiting)
    measured, theirs = getattr(other.achievable, field), getattr(other.nominal, _NOMINAL_OF[field], None)
    if measured is None or theirs is None:
        raise InputError(f"is like {relative}, which has no such rate", "give a value", file=path, field=place)
    share = float(measured) / float(theirs)
    return {
        "value": base * share,
        "status": "inferred",
        "source": f"{share:.3g} of nominal, as on {relative} ({measured.source})",
    }
