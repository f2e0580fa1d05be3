"""What an autoscaler is given is checked once, before any backend walks through it."""

import numpy as np

from workbench.errors import InputError
from workbench.records import not_negative, positive, whole
from workbench.serving.model.arrays import checked_forms, reals, right, wholes
from workbench.serving.model.lowered import COLOCATED, DECODE, Instances
from workbench.serving.model.scaled import UP, Scaling
from workbench.serving.policy.scalers import CHAINS, PARAMETERS, ROLES, SCALERS, SOURCES

MOST_TICKS = 100_000
"""Of the delay of a scrape and of windows: so many samples are kept."""


def checked_scaling(given: Scaling, instances: Instances) -> Scaling:
    """The same as contiguous arrays of the types that both backends take, refused where they make no sense.

    Parameters:
        given: places, policies and sources of weights.
        instances: its rows, as checked.

    Raises:
        InputError: the first array at fault, with the row.
    """
    model, roles = instances.model, bool((instances.role != COLOCATED).any())
    n, groups, models, hosts = model.size, np.size(given.kind), np.size(given.bytes), np.size(given.ssd_bytes_per_s)
    if groups != models * (1 + roles):
        remedy = f"give {models * (1 + roles)}, one for every model" + (" and role" if roles else "")
        raise InputError(f"has {groups} numbers", remedy, field="kind")
    group = model + models * (instances.role == DECODE)
    place, host = wholes(given.place, "place", n, 0), wholes(given.host, "host", n, 0)
    right(model < models, "model", f"give bytes, kind and so on for every model: there are {models}")
    right(host < hosts, "host", f"name one of the {hosts} hosts that ssd_bytes_per_s has")
    right(place < n, "place", "number the places from 0, without gaps")
    start_state = wholes(given.start_state, "start_state", n, 0)
    right(np.isin(start_state, (0, UP)), "start_state", f"give 0 (empty) or {UP} (up)")
    _one_each(place, host, group, start_state)
    kind, source = _numbered(given.kind, "kind", SCALERS, groups), _numbered(given.source, "source", SOURCES, groups)
    split = np.isin(np.arange(groups) % models, model[instances.role == DECODE])
    right(split | (kind != ROLES), "kind", "give the policy roles to models whose instances have roles only")
    par = reals(given.par, "par", (groups, 8))
    read = np.arange(8) < np.array([len(PARAMETERS[k]) for k in sorted(PARAMETERS)])[kind][:, None]
    right(~read | (par > 0), "par", "give the parameters that the policy reads, all above 0")
    least = {"min_rows": 0, "max_rows": 0, "up_ticks": 1, "down_ticks": 1, "down_step": 1}
    counts = {name: wholes(getattr(given, name), name, groups, low) for name, low in least.items()}
    right(counts["max_rows"] >= counts["min_rows"], "max_rows", "give at least min_rows")
    for name in ("up_ticks", "down_ticks"):
        right(counts[name] <= MOST_TICKS, name, f"give at most {MOST_TICKS:,} ticks")
    table = np.shape(given.multicast_s)
    if len(table) != 4 or table[0] != groups or min(table) == 0 or table[2] != table[3]:
        raise InputError(f"has shape {table}", f"give shape ({groups}, S, K, K), all 1 or more", field="multicast_s")
    shapes = {"control_s": groups, "fixed_s": groups, "dram_s": n, "bytes": models, "ssd_bytes_per_s": hosts}
    times = {name: reals(getattr(given, name), name, (size,)) for name, size in shapes.items()}
    times["multicast_s"] = reals(given.multicast_s, "multicast_s", table)
    if not np.size(given.ssd_each_bytes_per_s):
        given = given._replace(ssd_each_bytes_per_s=np.full(hosts, np.inf))
    ends = {"cache_bytes": hosts, "ttl_s": models, "keep_s": groups, "ssd_each_bytes_per_s": hosts}
    for name, size in ends.items():
        times[name] = reals(getattr(given, name), name, (size,), endless=True)
    for name, values in times.items():
        if name in ("bytes", "ssd_bytes_per_s", "ssd_each_bytes_per_s"):
            right(values > 0, name, "give numbers above 0")
        else:
            right(values >= 0, name, "give numbers of 0 or more")
    piped = _pipelines(given, n, table)
    if roles:
        right(np.isinf(piped["piped_s"]), "piped_s", "give infinity, rows with roles form no pipelines")
    cached = np.ascontiguousarray(given.cached, dtype=np.int64)
    if cached.shape != (hosts, models):
        raise InputError(f"has shape {cached.shape}", f"give shape ({hosts}, {models})", field="cached")
    right(np.isin(cached, (0, 1)), "cached", "give 0 or 1")
    return Scaling(
        place=place, host=host, start_state=start_state, tick_s=positive(given.tick_s, "tick_s"),
        scrape_ticks=whole(given.scrape_ticks, "scrape_ticks", 0, MOST_TICKS), kind=kind, par=par, source=source,
        cached=cached, **counts, **times, **piped, **_local(given, hosts, groups, models, table[2]),
        stale_s=not_negative(given.stale_s, "stale_s"), detect_s=not_negative(given.detect_s, "detect_s"),
        **_chains(given, source, np.arange(groups) >= models),
    )  # fmt: skip


def _local(given: Scaling, hosts: int, groups: int, models: int, most: int) -> dict[str, np.ndarray]:
    """The fields of loads from memory beside a multicast; empty ones become what changes nothing."""
    nothing = {
        "memory_first": np.zeros(groups, np.int64),
        "local_s": np.zeros((groups, most, most)),
        "local_piped_s": np.full((groups, most, most), np.inf),
        "local_with": np.full((groups, most, most), -1),
        "hosts_send": np.zeros(groups, np.int64),
        "pinned": np.zeros((hosts, models), np.int64),
    }
    found = {}
    for name, usual in nothing.items():
        value = getattr(given, name) if np.size(getattr(given, name)) else usual
        if usual.dtype == np.int64:
            found[name] = wholes(value, name, usual.shape, -1 if name == "local_with" else 0)
        else:
            found[name] = reals(value, name, usual.shape, endless=name == "local_piped_s")
            right(found[name] >= 0, name, "give numbers of 0 or more")
    for name in ("memory_first", "hosts_send", "pinned"):
        right(found[name] <= 1, name, "give 0 or 1")
    numbered = np.isinf(found["local_piped_s"]) | (found["local_with"] >= 0)
    right(numbered, "local_with", "number the pipeline of every row that local_piped_s has")
    return found


def _chains(given: Scaling, source: np.ndarray, decodes: np.ndarray) -> dict[str, np.ndarray]:
    """The fields of weights that come by chains, and of busy rows that change roles; empty ones become what changes
    nothing."""
    found, groups = {}, source.size
    for name, usual, least in (
        ("chains", 1, 0),
        ("decode_first", 0, 0),
        ("live", 0, 0),
        ("layers", 1, 1),
        ("reroute", 0, 0),
        ("mutate", 0, 0),
        ("requeue", 0, 0),
        ("stays", 0, 0),
        ("waits", 0, 0),
    ):
        value = getattr(given, name) if np.size(getattr(given, name)) else np.full(groups, usual)
        found[name] = wholes(value, name, groups, least)
    for name in ("decode_first", "reroute", "requeue", "stays", "waits"):
        right(found[name] <= 1, name, "give 0 or 1")
    right((found["stays"] == 0) | decodes, "stays", "give 0 to groups that do not decode")
    right(found["mutate"] <= 2, "mutate", "give 0, 1 or 2")
    right((found["mutate"] == 0) | decodes, "mutate", "give 0 to groups that do not decode")
    right(found["live"] <= 3, "live", "give 0 to 3")
    right((found["live"] == 0) | (source == CHAINS), "live", "give 0 where weights do not come by chains")
    for name, usual in (("lag_s", 0.0), ("near_s", np.inf), ("activation_s", 0.0), ("promise_s", np.inf)):
        value = getattr(given, name) if np.size(getattr(given, name)) else np.full(groups, usual)
        found[name] = reals(value, name, (groups,), endless=name in ("near_s", "promise_s"))
        right(found[name] >= 0, name, "give numbers of 0 or more")
    return found


def _pipelines(given: Scaling, n: int, table: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The fields of pipelines that serve while a multicast runs."""
    piped_s = reals(given.piped_s, "piped_s", table, endless=True)
    right(piped_s >= 0, "piped_s", "give numbers of 0 or more, or infinity")
    piped_with = wholes(given.piped_with, "piped_with", table, -1)
    right(np.isinf(piped_s) | (piped_with >= 0), "piped_with", "number the pipeline of every target that piped_s has")
    form = checked_forms(given.piped_form, "piped_form", n)
    switch_whole = wholes(given.switch_whole, "switch_whole", table[0], 0)
    right(switch_whole <= 1, "switch_whole", "give 0 or 1")
    return {"piped_s": piped_s, "piped_with": piped_with, "piped_form": form, "switch_whole": switch_whole}


def _one_each(place: np.ndarray, host: np.ndarray, group: np.ndarray, start_state: np.ndarray) -> None:
    """A place has one host, one row at most for each group, and one row at most that is up."""
    missing = np.setdiff1d(np.arange(place.max() + 1), place)
    if missing.size:
        raise InputError(f"has no row of place {missing[0]}", "number the places from 0, without gaps", field="place")
    first = np.zeros(place.max() + 1, np.int64)
    first[place[::-1]] = host[::-1]
    right(host == first[place], "host", "give all rows of a place the same host")
    for twice, what in ((group, "model"), (np.where(start_state == UP, -1, group), "start_state")):
        pairs = np.column_stack([place, twice])
        _, row = np.unique(pairs, axis=0, return_index=True)
        again = np.ones(place.size, bool)
        again[row] = False
        right(~again, what, "give a place one row at most for each model and role, and one at most that is up")


def _numbered(given, name: str, known: dict[str, int], size: int) -> np.ndarray:
    array = wholes(given, name, size, 0)
    right(array < len(known), name, f"give one of 0 to {len(known) - 1}")
    return array
