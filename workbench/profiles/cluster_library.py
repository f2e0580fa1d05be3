"""Clusters by name, from the user's own file, from this machine's measurement, or from hosts x accelerators."""

import functools
from pathlib import Path
from typing import Any

import polars as pl

from workbench.errors import InputError
from workbench.profiles.accelerator_library import accelerator as load_accelerator
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.checking import build
from workbench.profiles.cluster_record import Cluster, HostGroup
from workbench.profiles.link_library import link_table
from workbench.profiles.local_profile import local_tables
from workbench.profiles.naming import file_of, looks_like_path, names_in
from workbench.profiles.tables import quantity_columns
from workbench.profiles.toml_reading import read_toml, sources_in
from workbench.records import Source

_LINKS = ("nic", "scale_up", "pcie", "pcie_switch", "host_memory", "ssd", "remote_store")
_COUNTS = ("hosts", "accelerators", "nics", "accelerators_per_pcie_switch", "ssds", "remote_stores")


def cluster(name_or_path: str | Path | Cluster | None = None, **hosts_and_accelerators: Any) -> Cluster:
    """What a system runs on: hosts, accelerators, and every link between them.

    Parameters:
        name_or_path: a name of `clusters()` or an alias, the path of a TOML file, or "local" for this machine as
            `workbench measure` found it; leave it out to build a uniform cluster from keywords.
        hosts_and_accelerators: for a uniform cluster: `hosts`, `accelerators` (per host), `accelerator` (a name),
            `nic_bytes_per_s`, and where wanted `nics` (per host; one per accelerator when left out), `nic_latency_s`,
            `scale_up_bytes_per_s`, `host_bytes_per_s` (PCIe per accelerator), `accelerators_per_pcie_switch`,
            `pcie_switch_bytes_per_s`, `host_memory_bytes`, `host_memory_bytes_per_s`, `ssd_bytes_per_s`, `ssds`,
            `remote_store_bytes_per_s`, `remote_stores`, `name`. Rates are per direction; scale-up and PCIe are the
            accelerator's own unless given.

    Raises:
        UnknownName, InputError: no such name; a file or a number that cannot be used, with field and remedy.

    >>> two = cluster(hosts=2, accelerators=8, accelerator="h100-80gb-sxm", nic_bytes_per_s=50e9, nics=8)
    >>> two.accelerators, float(two.nic.rate()), two.places[9].host
    (16, 50000000000.0, 1)
    """
    if name_or_path is None:
        return _from_keywords(hosts_and_accelerators)
    if hosts_and_accelerators:
        raise InputError(
            f"a cluster was asked for by name and by {', '.join(sorted(hosts_and_accelerators))}",
            "give either a name or path, or hosts and accelerators",
        )
    if isinstance(name_or_path, Cluster):
        return name_or_path
    if name_or_path == "local":
        tables, path = local_tables()
        return _built(tables["cluster"], "local", path)
    if looks_like_path(name_or_path):
        path = Path(name_or_path)
        return _built(read_toml(path), path.name.removesuffix(".toml"), path)
    path = file_of("cluster", "clusters", name_or_path)
    return _named(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _named(path: Path, _changed_ns: int) -> Cluster:
    """A cluster that the package knows, as its file is: to check all its numbers takes longer than most answers."""
    return _built(read_toml(path), path.name.removesuffix(".toml"), path)


def clusters() -> pl.DataFrame:
    """All clusters, one row each, with nominal and achievable rates of their links and a source for each number.

    A link's columns are empty where the hosts differ in it (`uniform` is false) and where no source states any.
    """
    rows = []
    for name in names_in("clusters"):
        one = cluster(name)
        row: dict[str, Any] = {"name": one.name, "label": one.label, "hosts": one.hosts}
        row |= {"accelerators": one.accelerators, "uniform": one.uniform}
        row["accelerator"] = ", ".join(dict.fromkeys(group.accelerator.name for group in one.groups))
        row["nics"] = sum(group.hosts * group.nics for group in one.groups)
        for field in ("nic", "scale_up", "pcie", "ssd"):
            kinds = {getattr(group, field) for group in one.groups}
            kind = kinds.pop() if len(kinds) == 1 else None
            for which in ("nominal_bytes_per_s", "achievable_bytes_per_s"):
                empty = {f"{field}_{which}": None, f"{field}_{which}_source": None}
                row |= empty if kind is None else quantity_columns(which, kind, f"{field}_")
        counts = [f"{count.status}: {count.source}" for group in one.groups for count in group.counts]
        rows.append(row | {"counts_source": "; ".join(dict.fromkeys(counts)), "note": one.note})
    return pl.DataFrame(rows, infer_schema_length=None)


def _built(table: dict[str, Any], name: str, path: Path) -> Cluster:
    data = {key: value for key, value in table.items() if key not in ("sources", "defaults", "leaves")}
    sources, defaults = sources_in(table, path), table.get("defaults", {})
    groups = data.get("groups")
    if not isinstance(groups, list):
        raise InputError("is missing", "add at least one [[groups]] table", file=path, field="groups")
    if not isinstance(defaults, dict) or not all(isinstance(group, dict) for group in groups):
        raise InputError("is no table", "write [defaults] and [[groups]]", file=path, field="groups")
    data["groups"] = tuple(
        _group({**defaults, **group}, path, f"groups[{index}]", sources) for index, group in enumerate(groups)
    )
    if "leaves" in table:
        data["leaves"] = _leaves(table["leaves"], path)
    return build(Cluster, {"name": name, **data}, file=path, sources=sources)


def _leaves(table: Any, path: Path) -> tuple[dict[str, Any], ...]:
    if not isinstance(table, dict) or not all(isinstance(leaf, dict) for leaf in table.values()):
        raise InputError("is no table of tables", "write [leaves.NAME]", file=path, field="leaves")
    leaves = []
    for name, leaf in table.items():
        uplink = {key: link_table(value, path, f"leaves.{name}") for key, value in leaf.items()}
        leaves.append({"name": name, **uplink})
    return tuple(leaves)


def _group(group: dict[str, Any], path: Path, place: str, sources: dict[str, str]) -> dict[str, Any]:
    found = {key: value for key, value in group.items() if key not in ("accelerator", "preset")}
    name = group.get("accelerator")
    if not isinstance(name, str):
        raise InputError("is missing", "name an accelerator", file=path, field=f"{place}.accelerator")
    kind = load_accelerator(path.parent / name if looks_like_path(name) else name)
    if "preset" in group:
        if not isinstance(group["preset"], str):
            raise InputError("is no text", "name a preset of the accelerator", file=path, field=f"{place}.preset")
        kind = kind.under(group["preset"])
    found["accelerator"] = kind
    for field in _LINKS:
        if field in found:
            found[field] = link_table(found[field], path, f"{place}.{field}")
    found["counts"] = tuple(
        _counted(found, field, path, f"{place}.{field}", sources) for field in _COUNTS if field in found
    )
    return _with_own_links(found, kind)


def _counted(group: dict[str, Any], field: str, path: Path, place: str, sources: dict[str, str]) -> Source:
    """Put the bare count into the group, and say where it comes from."""
    value = group[field]
    if not isinstance(value, dict):
        return Source(quantity=place, value=str(value), status="user", source=str(path))
    if value.keys() != {"value", "status", "source"} or not isinstance(value["source"], str):
        raise InputError("is no count", "write it as { value, status, source }", file=path, field=place)
    group[field] = value["value"]
    source = {"value": str(value["value"]), "status": value["status"]}
    source["source"] = sources.get(value["source"], value["source"])
    return build(Source, {"quantity": place, **source}, file=path)


def _with_own_links(group: dict[str, Any], kind: Accelerator) -> dict[str, Any]:
    """Scale-up and PCIe links are the accelerator's own unless the group has others; false means there is none."""
    for field, rate in (("scale_up", "scale_up_bytes_per_s"), ("pcie", "host_bytes_per_s")):
        if group.get(field) is False:
            group[field] = None
        elif field not in group:
            nominal, achievable = getattr(kind.nominal, rate), getattr(kind.achievable, rate)
            if nominal is not None or achievable is not None:
                group[field] = {
                    "name": f"{kind.name} {field}",
                    "nominal_bytes_per_s": nominal,
                    "achievable_bytes_per_s": achievable,
                    "latency_s": kind.achievable.scale_up_latency_s if field == "scale_up" else None,
                }
    return group


def _from_keywords(given: dict[str, Any]) -> Cluster:
    fields = {key: value for key, value in given.items() if value is not None}
    missing = [name for name in ("hosts", "accelerators", "accelerator") if name not in fields]
    if missing:
        raise InputError(
            f"a cluster needs a name, or hosts, accelerators and accelerator (no {', '.join(missing)})",
            'write cluster("blitzscale-a"), or cluster(hosts=2, accelerators=8, accelerator="h100-80gb-sxm", '
            "nic_bytes_per_s=50e9)",
        )
    kind = load_accelerator(fields.pop("accelerator"))
    name = fields.pop("name", f"{fields['hosts']} x {fields['accelerators']} {kind.name}")
    group: dict[str, Any] = {"accelerator": kind}
    for link in _LINKS:
        rate = fields.pop("host_bytes_per_s" if link == "pcie" else f"{link}_bytes_per_s", None)
        latency = fields.pop(f"{link}_latency_s", None)
        if rate is not None:
            group[link] = {"name": link, "nominal_bytes_per_s": rate, "latency_s": latency}
    if "nic" in group:
        group["nics"] = fields.pop("nics", fields["accelerators"])
    group |= fields
    counts = tuple(
        Source(quantity=field, value=str(group[field]), status="user", source="given in code")
        for field in _COUNTS
        if field in group
    )
    built = build(HostGroup, _with_own_links({**group, "counts": counts}, kind))
    return Cluster(name=name, groups=(built,))
