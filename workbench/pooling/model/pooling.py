"""A pool of GPUs as people describe it, and the arrays that the backends take."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from workbench import profiles
from workbench.errors import InputError, UnknownName
from workbench.pooling.model.facts import Variant, facts
from workbench.pooling.model.lowered import Lowered, Models, Pool, Requests, Rules
from workbench.pooling.model.placing import static_places
from workbench.pooling.model.served import PoolModel
from workbench.pooling.model.switching import ByRate, SwitchTime
from workbench.pooling.policy import capacity_of, may_prefetch
from workbench.pooling.policy.names import (
    ADMISSIONS,
    CLOCKS,
    GROUP_RULES,
    LOAD_RULES,
    PREFETCH,
    PREFETCHES,
    SHARED,
    SYSTEMS,
    TURNS,
)
from workbench.profiles import Cluster
from workbench.records import Asked, AtLeastOne, NotNegative, Positive, ZeroOrMore
from workbench.workloads.handle import Trace

Endless = Annotated[float, Field(gt=0)]
"""A number above 0, or infinity."""
INFINITY = float("inf")


class Pooling(Asked):
    """How many models share GPUs.

    Attributes:
        system: a key of `policy.SYSTEMS`.
        prefill, decode: instances that process prompts, and that decode; systems of whole requests use both alike.
        nodes: hosts that they are spread over evenly; a model is served by one of them, by its number.
        accelerators: of an instance.
        memory_bytes: of an instance for weights and KV caches.
        link_bytes_per_s: of an instance to its host, each way. host_bytes_per_s: of a host's memory in all.
        host_kv_bytes, host_cache_bytes: of a host's memory for KV caches (read by admission control), and for weights.
        miss_bytes_per_s: at which weights come that their host does not hold.
        switch: time to load weights that it holds. assumed: what the schedulers think it is; the same when None.
        least_switch_s: what a switch takes at least.
        least_blocks: KV blocks that must be left beside weights that are prefetched.
        group_rule, group_limit, load_rule: keys of `policy.GROUP_RULES` and `LOAD_RULES`; most requests of a group.
        quota_s, floor: longest quota of a turn, least pace.
        tbt_s: time between tokens that the quotas aim at, and that is promised. ttft_s: promised first token.
        blind: the scheduler takes a batch for -1 requests, as in the artifact.
        clock, prefetch, admission: keys of `policy.CLOCKS`, `PREFETCHES` and `ADMISSIONS`.
        overlap: KV caches move while others load, leave or compute.
        give_up_s: requests fail that have no first token by then. buffer_s: cap on what a batch earns.
        margin: factor on believed output lengths in admission control.
        owner_from: requests inside from which on owners are held to their number.
    """

    system: str = "aegaeon"
    prefill: ZeroOrMore = 6
    decode: AtLeastOne = 10
    nodes: AtLeastOne = 2
    accelerators: AtLeastOne = 1
    memory_bytes: Positive
    link_bytes_per_s: Positive
    host_bytes_per_s: Endless = INFINITY
    host_kv_bytes: Endless = INFINITY
    host_cache_bytes: Endless = INFINITY
    miss_bytes_per_s: Positive = 1e9
    switch: SwitchTime
    assumed: SwitchTime | None = None
    least_switch_s: NotNegative = 0.01
    least_blocks: ZeroOrMore = 1024
    group_rule: str = "accumulative"
    group_limit: AtLeastOne = 8
    load_rule: str = "time"
    quota_s: Positive = 4.0
    floor: Positive = 0.5
    tbt_s: Positive = 0.1
    ttft_s: Endless = 10.0
    blind: bool = False
    clock: str = "after-switch"
    prefetch: str = "on"
    overlap: bool = True
    give_up_s: Endless = INFINITY
    buffer_s: Endless = INFINITY
    admission: str = "everybody"
    margin: Positive = 1.0
    owner_from: ZeroOrMore = 0


BLOCK_TOKENS = 16


def pooling_on(cluster: str | Cluster = "aegaeon-h800", variant: str = "paper", **changes) -> Pooling:
    """A pool on a cluster, run as the paper, its artifact or the simulator in that does.

    Parameters:
        cluster: a name or record, its hosts alike, with PCIe.
        variant: "paper", "artifact" or "simulator".
        changes: fields of `Pooling` that differ.

    Raises:
        UnknownName: no such variant. InputError: a cluster without PCIe.

    >>> pooling_on("aegaeon-h800").switch.of(26e9)
    0.65
    """
    known = facts().variants
    if variant not in known:
        raise UnknownName("variant", variant, known)
    hosts, rules = profiles.cluster(cluster) if isinstance(cluster, str) else cluster, known[variant]
    pcie = hosts.host.pcie
    if pcie is None:
        raise InputError(f"{hosts.name} states no PCIe", "choose another cluster", field="cluster")
    memory = float(hosts.accelerator.memory_bytes)
    tp = changes.get("accelerators", 1)
    nominal = float(pcie.rate("nominal"))
    rate = float(rules.load_bytes_per_s or pcie.rate())
    whole = rules.load_bytes_per_s is not None
    settings = {
        "nodes": 1 if whole else hosts.hosts,
        "memory_bytes": tp * memory * (1.0 if whole else float(rules.memory_fraction)),
        "link_bytes_per_s": tp * (rate if whole else nominal),
        "switch": ByRate(bytes_per_s=tp * rate),
        "assumed": None if whole else ByRate(bytes_per_s=tp * _assumed(rules, nominal)),
        "least_switch_s": float(rules.least_switch_s),
        "least_blocks": int(float(rules.least_blocks or 0)),
        "give_up_s": INFINITY if rules.give_up_s is None else float(rules.give_up_s),
        **{name: getattr(rules, name) for name in ("group_rule", "load_rule", "blind", "clock", "prefetch")},
    }
    return Pooling(**(settings | changes))


def _assumed(rules: Variant, nominal: float) -> float:
    return float(rules.assumed_fraction) * float(rules.assumed_nominal_bytes_per_s or nominal)


def lower(
    pooling: Pooling,
    models: Mapping[str, PoolModel],
    requests: Trace | pl.DataFrame,
    *,
    believed: np.ndarray | None = None,
    refused: np.ndarray | None = None,
    owners: Mapping[str, str] | None = None,
    owner_most: Mapping[str, int] | None = None,
) -> Lowered:
    """The arrays of a run.

    Parameters:
        pooling: the pool.
        models: what each name in the trace stands for, in order; their places in it are their numbers.
        requests: a trace or its table, sorted by arrival.
        believed: int64[n], output tokens that admission control believes in; the true ones when None.
        refused: int64[n], 1 for requests that are turned away.
        owners, owner_most: whose model each is, and most requests inside of each owner; no limits when None.

    Raises:
        InputError: a model that does not fit an instance, instances that do not divide among nodes, a model that the
            trace names and `models` does not.
    """
    table = requests.requests if isinstance(requests, Trace) else requests
    numbers = {name: number for number, name in enumerate(models)}
    if missing := [name for name in table["model"].unique(maintain_order=True) if name not in numbers]:
        raise InputError(f"does not know {missing[0]!r}, which the trace asks for", "describe it", field="models")
    arrival_s = table["arrival_s"].to_numpy().astype(float)
    output = table["output_tokens"].to_numpy().astype(np.int64)
    asked = Requests(
        arrival_s=arrival_s - (arrival_s[0] if arrival_s.size else 0.0),
        prompt=np.maximum(1, table["prompt_tokens"].to_numpy().astype(np.int64)),
        output=output,
        model=np.array([numbers[name] for name in table["model"]], np.int64),
        believed=output if believed is None else believed,
        refused=np.zeros(output.size, np.int64) if refused is None else refused,
    )
    pool = _pool(pooling, len(models))
    return Lowered(asked, _models(pooling, models, pool, owners or {}, owner_most), pool, _rules(pooling))


def _pool(pooling: Pooling, models: int) -> Pool:
    system, nodes = SYSTEMS[_known("system", pooling.system, SYSTEMS)], pooling.nodes
    if system == TURNS:
        for name in ("prefill", "decode"):
            count = getattr(pooling, name)
            if count == 0 or count % nodes:
                problem = f"is {count}, which {nodes} nodes do not share evenly"
                raise InputError(problem, f"give a multiple of {nodes} above 0", field=f"Pooling.{name}")
        share = [0] * (pooling.prefill // nodes) + [1] * (pooling.decode // nodes)
        node, decodes = np.repeat(np.arange(nodes), len(share)), np.array(share * nodes)
    else:
        size = models if pooling.system == "dedicated" else pooling.prefill + pooling.decode
        node, decodes = np.zeros(size, np.int64), np.zeros(size, np.int64)
    return Pool(
        node=node,
        decodes=decodes,
        link_bytes_per_s=pooling.link_bytes_per_s,
        host_bytes_per_s=pooling.host_bytes_per_s,
        kv_bytes=pooling.host_kv_bytes,
        cache_bytes=pooling.host_cache_bytes,
        miss_bytes_per_s=pooling.miss_bytes_per_s,
    )


def _models(
    pooling: Pooling,
    models: Mapping[str, PoolModel],
    pool: Pool,
    owners: Mapping[str, str],
    owner_most: Mapping[str, int] | None,
) -> Models:
    rows = list(models.values())
    weights = np.array([row.weight_bytes for row in rows])
    blocks = np.array([round(row.kv_bytes_per_token * BLOCK_TOKENS) for row in rows])
    load_s = np.array([pooling.switch.of(row.weight_bytes) for row in rows])
    assumed = pooling.switch if pooling.assumed is None else pooling.assumed
    system = SYSTEMS[pooling.system]
    after = _after(pooling, rows, blocks)
    home = np.arange(len(rows)) % (1 + int(pool.node[-1]))
    place = np.full(len(rows), -1)
    beside = np.zeros(len(rows))
    if system == TURNS:
        beside = (after * weights[None, :]).max(axis=1)
    elif system == SHARED:
        place, beside = static_places(pooling.system, weights, pool.node.size)
    room = np.array([capacity_of(pooling.memory_bytes, *row) for row in zip(weights, beside, blocks, strict=True)])
    if system == SHARED:  # the models of an instance share what their weights leave
        room = room // np.maximum(1, np.bincount(place[place >= 0], minlength=pool.node.size)[place])
    own = [row.kv_bytes is not None for row in rows]
    room[own] = [int(row.kv_bytes // (row.kv_bytes_per_token * BLOCK_TOKENS)) for row in rows if row.kv_bytes]
    if (room[place >= 0] if system == SHARED else room).min(initial=1) < 1:
        name = list(models)[int(np.argmin(room))]
        problem = f"leaves no KV cache to {name}: {weights[int(np.argmin(room))]:,.0f} bytes of weights"
        raise InputError(problem, "give more memory, or more accelerators an instance", field="Pooling.memory_bytes")
    names = list(dict.fromkeys(owners.get(name, "") for name in models))
    most = [2**31 if owner_most is None else owner_most[name] for name in names]
    return Models(
        weight_bytes=weights,
        load_bytes_per_s=weights / load_s,
        assumed_s=np.array([assumed.of(row.weight_bytes) for row in rows]),
        home=home,
        place=place,
        owner=np.array([names.index(owners.get(name, "")) for name in models]),
        owner_most=np.array(most),
        block_bytes=blocks,
        capacity=room,
        after=after,
        prefill=np.array([row.prefill for row in rows]),
        decode=np.array([row.decode for row in rows]),
    )


def _after(pooling: Pooling, rows: list[PoolModel], blocks: np.ndarray) -> np.ndarray:
    """Which model may be prefetched while which is resident."""
    if PREFETCHES[_known("prefetch", pooling.prefetch, PREFETCHES)] != PREFETCH:
        return np.zeros((len(rows), len(rows)), np.int64)
    least = [max(pooling.least_blocks, -(-row.longest_tokens // BLOCK_TOKENS)) for row in rows]
    kinds = {(row.weight_bytes, block, few) for row, block, few in zip(rows, blocks.tolist(), least, strict=True)}
    sizes = {row.weight_bytes for row in rows}
    allowed = {
        (kind, size): may_prefetch(pooling.memory_bytes, kind[0], size, kind[1], kind[2])
        for kind in kinds
        for size in sizes
    }
    return np.array(
        [
            [allowed[(row.weight_bytes, block, few), other.weight_bytes] for other in rows]
            for row, block, few in zip(rows, blocks.tolist(), least, strict=True)
        ],
        np.int64,
    )


def _known(field: str, name: str, table: Mapping[str, int]) -> str:
    if name not in table:
        raise UnknownName(field.replace("_", " "), name, table)
    return name


def _rules(pooling: Pooling) -> Rules:
    named = {
        "system": SYSTEMS,
        "group_rule": GROUP_RULES,
        "load_rule": LOAD_RULES,
        "clock": CLOCKS,
        "prefetch": PREFETCHES,
        "admission": ADMISSIONS,
    }
    numbers = {field: table[_known(field, getattr(pooling, field), table)] for field, table in named.items()}
    return Rules(
        **numbers,
        group_limit=pooling.group_limit,
        most_s=pooling.quota_s,
        floor=pooling.floor,
        tbt_s=pooling.tbt_s,
        blind=int(pooling.blind),
        overlap=int(pooling.overlap),
        least_switch_s=pooling.least_switch_s,
        give_up_s=pooling.give_up_s,
        buffer_s=pooling.buffer_s,
        block_tokens=BLOCK_TOKENS,
        promise_ttft_s=pooling.ttft_s,
        promise_tbt_s=pooling.tbt_s,
        margin=pooling.margin,
        owner_from=pooling.owner_from,
    )
