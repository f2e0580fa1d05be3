"""Links by name; the facts hold all of them in one table."""

from pathlib import Path
from typing import Any

import polars as pl

from workbench.errors import InputError, UnknownName
from workbench.paths import facts_folder
from workbench.profiles.checking import build
from workbench.profiles.link_record import Link
from workbench.profiles.tables import quantity_columns
from workbench.profiles.toml_reading import read_toml


def link(name: str) -> Link:
    """How fast one kind of link is, nominally and in practice.

    Parameters:
        name: a name of `links()`, such as "rdma-400g" or "pcie-4-x16".

    Raises:
        UnknownName: there is no such link.

    >>> float(link("rdma-400g").nominal_bytes_per_s)
    50000000000.0
    """
    table, sources, path = _library()
    if name not in table:
        raise UnknownName("link", name, table)
    return build(Link, {"name": name, **table[name]}, file=path, sources=sources)


def links() -> pl.DataFrame:
    """All links with nominal and achievable rates side by side, and a source for each number."""
    rows = []
    for name in sorted(_library()[0]):
        one = link(name)
        row: dict[str, Any] = {"name": one.name, "label": one.label}
        for field in ("nominal_bytes_per_s", "achievable_bytes_per_s", "latency_s"):
            row |= quantity_columns(field, one)
        rows.append(row | {"alternates": [item.preset for item in one.alternates], "note": one.note})
    return pl.DataFrame(rows, infer_schema_length=None)


def link_table(value: Any, file: Path, field: str) -> Any:
    """A link as a cluster file writes it: a name, a whole table, or { like = NAME, ... } that changes some fields.

    Gives the table that validates into a `Link`; what is no such thing is left for validation to refuse.
    """
    if isinstance(value, Link):
        return value
    name = value.get("like") if isinstance(value, dict) else value
    if not isinstance(name, str):
        return value
    table, sources, _ = _library()
    if name not in table:
        raise InputError(
            f"names the link {name!r}, which is unknown",
            f"use one of: {', '.join(sorted(table))}, or write it as a table",
            file=file,
            field=field,
        )
    # The library's short source names mean nothing in the cluster's file, so they are written out here.
    base = {key: _with_source(item, sources) for key, item in table[name].items()}
    changes = {key: item for key, item in value.items() if key != "like"} if isinstance(value, dict) else {}
    return {"name": name, **base, **changes}


def _with_source(item: Any, sources: dict[str, str]) -> Any:
    if not isinstance(item, dict):
        return item
    if "source" in item:
        return {**item, "source": sources.get(item["source"], item["source"])}
    return {key: _with_source(inner, sources) for key, inner in item.items()}


def _library() -> tuple[dict[str, Any], dict[str, str], Path]:
    path = facts_folder() / "hardware" / "links.toml"
    tables = read_toml(path)
    return {name: table for name, table in tables.items() if name != "sources"}, tables.get("sources", {}), path
