"""What moved while a cluster grew: every load of weights as a transfer, and how fast the links ran."""

from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.profiles import Cluster
from workbench.serving import Run, Scenario
from workbench.serving.model.allocating import end_of
from workbench.serving.model.kv_tables import LINKS, TRANSFERS
from workbench.serving.policy.scalers import (
    CHAIN_TIER,
    DRAM_TIER,
    MULTICAST_TIER,
    NEAR_TIER,
    SSD_TIER,
    TIERS_BY_NUMBER,
)

WHOLE = -1
"""Stands in the column `block` for all of them together."""
MOVING = (DRAM_TIER, SSD_TIER, MULTICAST_TIER, CHAIN_TIER, NEAR_TIER)
FIRST = (SSD_TIER, CHAIN_TIER)
"""Tiers of which the engine starts behind the weights."""


class Loads(NamedTuple):
    """Loads of weights over a path that is modelled, in order of their start.

    Attributes:
        start_s, end_s: float64[k] of the weights alone, from the first arrival on; NaN where they never came whole.
        row, host, tier, model, sources, operation, version: int64[k].
        bytes: float64[k].
    """

    start_s: np.ndarray
    end_s: np.ndarray
    row: np.ndarray
    host: np.ndarray
    tier: np.ndarray
    model: np.ndarray
    sources: np.ndarray
    operation: np.ndarray
    bytes: np.ndarray
    version: np.ndarray


def loads_of(run: Run, scenario: Scenario) -> Loads:
    """The weights' part of each load: before the engine starts where they come from SSD or by chains, else after it."""
    scaling, table = run.lowered.scaling, run.outcome.loads
    if scaling is None:
        table = table[:0]
    tier = table[:, 3].astype(np.int64)
    version = run.outcome.load_version if run.outcome.load_version.size else np.zeros(len(table), np.int64)
    table, tier = table[moves := np.isin(tier, MOVING)], tier[moves]
    row, sources, operation = (table[:, k].astype(np.int64) for k in (2, 4, 5))
    model = run.lowered.instances.model[row]
    plans, group = [one.start_up for one in scenario.groups], np.array(scenario.row_groups)[row]
    engine_s = np.array([plan.engine.seconds for plan in plans])[group]
    after_s = np.array([plan.warm_up.seconds for plan in plans])[group]
    read = np.isin(tier, FIRST)
    return Loads(
        start_s=table[:, 0] + np.where(read, 0.0, engine_s),
        end_s=table[:, 1] - np.where(read, engine_s + after_s, after_s),
        row=row,
        host=scaling.host[row] if scaling is not None else row,
        tier=tier,
        model=model,
        sources=sources,
        operation=operation,
        bytes=scaling.bytes[model] if scaling is not None else table[:, 0],
        version=version[moves],
    )


def weight_transfers(run: Run, scenario: Scenario) -> pl.DataFrame:
    """Every load as one transfer of all its weights (block -1): `start_s, end_s, source, target, block, bytes, kind,
    model, version, path`.

    A source is a host's memory, its SSDs, or how many instances or hosts sent together; a load that was lost, or had
    not ended with the run, has no end, and brought 0 bytes. The path is the tier that `scaleouts` names.
    """
    loads = loads_of(run, scenario)
    places = {DRAM_TIER: "memory of host {}", SSD_TIER: "SSD of host {}"}
    source = [
        places[tier].format(host) if tier in places else f"{count} sender{'' if count == 1 else 's'}"
        for tier, host, count in zip(loads.tier.tolist(), loads.host.tolist(), loads.sources.tolist(), strict=True)
    ]
    columns = {
        "start_s": loads.start_s + run.start_s,
        "end_s": loads.end_s + run.start_s,
        "source": source,
        "target": [f"instance {row}" for row in loads.row.tolist()],
        "block": [WHOLE] * loads.row.size,
        "bytes": np.where(np.isnan(loads.end_s), 0.0, loads.bytes),
        "kind": ["weights"] * loads.row.size,
        "model": [run.models[m] for m in loads.model.tolist()],
        "version": loads.version,
        "path": [TIERS_BY_NUMBER[tier] for tier in loads.tier.tolist()],
    }
    return pl.DataFrame(columns, schema=TRANSFERS)


def weight_links(run: Run, scenario: Scenario) -> pl.DataFrame:
    """How fast links ran for weights: `start_s, end_s, link, kind, bytes_per_s`.

    The SSDs of a host run as fast as those that read there together may; an instance's own way to its host's memory,
    its network cards and the network of its host, at the mean of each load. A load that never came whole is seen on the
    SSDs only. Loads by chains are left to `workbench.serving.model.kv_tables.kv_links`.
    """
    loads = loads_of(run, scenario)
    names = {DRAM_TIER: "memory of host {1} to instance {0}", MULTICAST_TIER: "network to instance {0}"}
    names[NEAR_TIER] = "network of host {1} to instance {0}"
    rows = []
    for k in np.flatnonzero(~np.isin(loads.tier, FIRST) & (loads.end_s > loads.start_s)).tolist():
        name = names[int(loads.tier[k])].format(loads.row[k], loads.host[k])
        start_s, end_s = float(loads.start_s[k]), float(loads.end_s[k])
        rows.append((start_s, end_s, name, "weights", float(loads.bytes[k]) / (end_s - start_s)))
    read = loads.tier == SSD_TIER
    for host in np.unique(loads.host[read]).tolist():
        mine = read & (loads.host == host)
        times_s = np.concatenate([loads.start_s[mine], _read_until(run, loads, mine)])
        instants_s, at = np.unique(times_s, return_inverse=True)
        readers = np.cumsum(np.bincount(at, weights=np.repeat([1, -1], int(mine.sum()))))[:-1]
        scaling = run.lowered.scaling
        rates = np.minimum(scaling.ssd_bytes_per_s[host], readers * scaling.ssd_each_bytes_per_s[host])
        for k in np.flatnonzero(readers > 0).tolist():
            rows.append((float(instants_s[k]), float(instants_s[k + 1]), f"SSD of host {host}", "weights", rates[k]))
    table = pl.DataFrame(rows, schema=LINKS, orient="row")
    return table.with_columns(pl.col("start_s", "end_s") + run.start_s).sort("start_s", "link", maintain_order=True)


def _read_until(run: Run, loads: Loads, mine: np.ndarray) -> np.ndarray:
    """When reads ended: whole, with the failure of their place, or with the run."""
    end_s = loads.end_s[mine].copy()
    row, start_s, states = loads.row[mine], loads.start_s[mine], run.outcome.states
    last_s = end_of(run.lowered, run.outcome)
    for k in np.flatnonzero(np.isnan(end_s)):
        later = states[(states[:, 1] == row[k]) & (states[:, 0] > start_s[k]), 0]
        end_s[k] = later[0] if later.size else max(last_s, start_s[k])
    return end_s


def bandwidth_share(run: Run, scenario: Scenario, cluster: Cluster) -> float:
    """Bytes/s that loads got, over those of the nominal links they came by; NaN where nothing was loaded.

    Each load counts by its bytes: the time that all would take at nominal rates, over the time that they took.
    """
    loads = loads_of(run, scenario)
    done = ~np.isnan(loads.end_s) & (loads.end_s > loads.start_s)
    if not done.any():
        return float("nan")
    nominal = {tier: nominal_bytes_per_s(cluster, run.accelerators, tier) for tier in np.unique(loads.tier[done])}
    ideal_s = sum(size / nominal[tier] for size, tier in zip(loads.bytes[done], loads.tier[done], strict=True))
    return float(ideal_s / (loads.end_s - loads.start_s)[done].sum())


def nominal_bytes_per_s(cluster: Cluster, tp: int, tier: int) -> float:
    """Of the path of a tier to one instance alone, by data sheets."""
    host, places = cluster.host, cluster.places[:tp]
    if tier == NEAR_TIER:
        return tp * float(host.scale_up.rate("nominal"))
    if tier in (MULTICAST_TIER, CHAIN_TIER):
        return float(host.nic.rate("nominal")) * len({card for place in places for card in place.nics})
    together = tp * float(host.pcie.rate("nominal"))
    if host.pcie_switch is not None:
        together = min(together, -(-tp // host.accelerators_per_pcie_switch) * float(host.pcie_switch.rate("nominal")))
    if host.host_memory is not None:
        together = min(together, float(host.host_memory.rate("nominal")))
    if tier == SSD_TIER:
        paths = len({path for place in places for path in place.ssds})
        return min(together, paths * float(host.ssd.rate("nominal")))
    return together
