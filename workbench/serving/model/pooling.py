"""A pool of places as arrays: rows, hosts, policies, and the ways that weights take."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import InputError
from workbench.serving.model.autoscaling import BUSY, Autoscaler, Pool
from workbench.serving.model.multicast_table import local_tables, multicast_table, pipeline_tables
from workbench.serving.model.scaled import EMPTY, UP, Scaling
from workbench.serving.model.start_up import StartUp, Weights
from workbench.serving.model.step_forms import StepForm
from workbench.serving.policy.scalers import SCALERS, SOURCES

if TYPE_CHECKING:
    from workbench.serving.model.scenario import Group

MOST_TARGETS, MOST_SOURCES = 64, 16
"""Of one multicast; more targets are a second one, more sources do not help."""


def pooled(pool: Pool, groups: Sequence["Group"]) -> Scaling:
    """Places host after host; the row of a place and group is place x groups + group.

    Instances that a group has at first take the first places, group after group. Groups are numbered anew by model and
    role, see `workbench.serving.model.scaled`.

    Raises:
        InputError: two groups of one model and role, roles of a model with other weights, more instances than places,
            weights that no SSD holds, an unknown model.
    """
    count, models = pool.hosts * pool.places, list(dict.fromkeys(group.model for group in groups))
    if len({(group.model, group.role) for group in groups}) < len(groups):
        raise InputError("has two groups of one model and role", "with a pool give them one", field="groups")
    first = [m for m, group in enumerate(groups) for _ in range(group.count)]
    if len(first) > count:
        raise InputError(
            f"has {len(first)} instances for {count} places", "give it fewer or a larger pool", field="groups"
        )
    unknown = [name for name in pool.cached if name not in models]
    if unknown:
        raise InputError(f"names {unknown[0]!r}, which no group serves", "name models of the groups", field="cached")
    owned = [_of_model(name, groups) for name in models]
    if pool.ssd_bytes_per_s is None and any(group.start_up.weights.reads_ssd for group in groups):
        raise InputError("is missing, but weights may be read from SSD", "give it", field="ssd_bytes_per_s")
    start_state = np.full((count, len(groups)), EMPTY)
    start_state[np.arange(len(first)), first] = UP
    scalers, starts = _by_number(groups, models)
    weights = [one.weights for one in starts]
    multicast_s, piped_s, piped_with = _tables(weights, count)
    plans = [one.multicast for one in weights]
    local = [local_tables(one.multicast, _from_memory_s(one), multicast_s.shape[2]) for one in weights]
    local_s, local_piped_s, local_with = (np.array(tables) for tables in zip(*local, strict=True))
    place = np.repeat(np.arange(count), len(groups))
    return Scaling(
        place=place,
        host=place // pool.places,
        start_state=start_state.ravel(),
        tick_s=pool.tick_s,
        scrape_ticks=pool.scrape_ticks,
        kind=np.array([SCALERS[one.policy] for one in scalers]),
        par=np.array([one.numbers for one in scalers]),
        min_rows=np.array([one.least for one in scalers]),
        max_rows=np.array([one.most for one in scalers]),
        up_ticks=np.array([one.up_ticks for one in scalers]),
        down_ticks=np.array([one.down_ticks for one in scalers]),
        down_step=np.array([one.down_step for one in scalers]),
        source=np.array([SOURCES[one.path] for one in weights]),
        control_s=np.array([one.control_s for one in starts]),
        fixed_s=np.array([one.fixed_s for one in weights]),
        dram_s=np.tile([_from_memory_s(group.start_up.weights) for group in groups], count),
        multicast_s=multicast_s,
        bytes=np.array([one.bytes or 1.0 for one in owned]),
        ssd_bytes_per_s=np.full(pool.hosts, pool.ssd_bytes_per_s or 1.0),
        ssd_each_bytes_per_s=np.full(pool.hosts, pool.ssd_each_bytes_per_s or np.inf),
        cache_bytes=np.full(pool.hosts, pool.cache_bytes),
        ttl_s=np.array([one.ttl_s for one in owned]),
        cached=_cached(pool, groups, models, first),
        keep_s=np.array([one.keep_s for one in weights]),
        piped_s=piped_s,
        piped_with=piped_with,
        piped_form=np.tile([_piped_step(group).rows for group in groups], (count, 1, 1)),
        switch_whole=np.array([int(plan is not None and plan.switch == "whole") for plan in plans]),
        memory_first=np.array([int(one.memory_first) for one in weights]),
        local_s=local_s,
        local_piped_s=local_piped_s,
        local_with=local_with,
        hosts_send=np.array([int(one.hosts_send) for one in weights]),
        chains=np.array([one.chains for one in weights]),
        lag_s=np.array([one.lag_s for one in weights]),
        decode_first=np.array([int(one.decode_first) for one in weights]),
        near_s=np.array(
            [one.bytes / one.near_bytes_per_s if one.bytes and one.near_bytes_per_s else np.inf for one in weights]
        ),
        live=np.array([int(one.live) * (1 + one.only_worth if one.promise_s is None else 3) for one in weights]),
        promise_s=np.array([np.inf if one.promise_s is None else one.promise_s for one in weights]),
        waits=np.array([int(one.judged == "oldest") for one in weights]),
        layers=np.array([one.layers or 1 for one in weights]),
        activation_s=np.array([one.activation_s for one in weights]),
        reroute=np.array([int(one.reroute) for one in weights]),
        mutate=np.array([BUSY[one.busy] for one in scalers]),
        requeue=np.array([int(one.requeue) for one in scalers]),
        stays=np.array([int(one.stays) for one in scalers]),
        stale_s=pool.stale_s,
        detect_s=pool.detect_s,
        pinned=(_behind_first(pool.hosts, owned) < [one.pinned for one in owned]).astype(np.int64),
    )


def _behind_first(hosts: int, owned: Sequence[Weights]) -> np.ndarray:
    """How many hosts after the first that may keep a model's weights each comes, int64[H, M]."""
    first = [m if one.path == "chains" else 0 for m, one in enumerate(owned)]
    return (np.arange(hosts)[:, None] - first) % hosts


def _of_model(name: str, groups: Sequence["Group"]) -> Weights:
    """The weights of a model, of which its roles have to say the same."""
    first, *others = (group.start_up.weights for group in groups if group.model == name)
    for field in ("bytes", "ttl_s", "pinned"):
        stated = [getattr(one, field) for one in (first, *others)]
        if len(set(stated)) > 1:
            raise InputError(
                f"of model {name!r} is {stated[0]} and {stated[1]}", "give both roles the same", field=field
            )
    return first


def _by_number(groups: Sequence["Group"], models: Sequence[str]) -> tuple[list[Autoscaler], list[StartUp]]:
    """Autoscalers and plans of all groups by number; a model and role without instances has the usual ones."""
    roles = (
        (("prefill", "colocated"), ("decode",)) if any(one.role != "colocated" for one in groups) else (("colocated",),)
    )
    found = [
        next((group for group in groups if group.model == name and group.role in wanted), None)
        for wanted in roles
        for name in models
    ]
    return [one.autoscaler if one else Autoscaler() for one in found], [
        one.start_up if one else StartUp() for one in found
    ]


def _cached(pool: Pool, groups: Sequence["Group"], models: Sequence[str], first: Sequence[int]) -> np.ndarray:
    """Which hosts have which weights in memory at first, int64[H, M]: those of the pool, and those that came through a
    host's memory to the instances there."""
    cached = np.tile([int(name in pool.cached) for name in models], (pool.hosts, 1))
    for place, k in enumerate(first):
        if groups[k].start_up.weights.path == "tiers":
            cached[place // pool.places, models.index(groups[k].model)] = 1
    return cached


def _from_memory_s(one: Weights) -> float:
    return one.bytes / one.dram_bytes_per_s if one.bytes and one.dram_bytes_per_s else 0.0


def _piped_step(group: "Group") -> StepForm:
    """The step time of a member of a pipeline; that of the instance alone where there are none."""
    plan = group.start_up.weights.multicast
    return group.step if plan is None or plan.piped_step is None else plan.piped_step


def _tables(weights: Sequence[Weights], places: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[M, S, K, K] each: when copies are there, when pipelines form, which; of one source and target if none."""
    sent = any(one.path == "multicast" for one in weights)
    targets = min(max(1, places - 1), MOST_TARGETS) if sent else 1
    sources = min(targets, MOST_SOURCES)
    shape = len(weights), sources, targets, targets
    done_s, forms_s, pipeline = np.zeros(shape), np.full(shape, np.inf), np.full(shape, -1)
    for m, one in enumerate(weights):
        if one.path == "multicast":
            done_s[m] = multicast_table(one.multicast, one.bytes, sources, targets)
            forms_s[m], pipeline[m] = pipeline_tables(one.multicast, sources, targets)
    return done_s, forms_s, pipeline
