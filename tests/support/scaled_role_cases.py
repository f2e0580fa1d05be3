"""Clusters that change their size and whose instances have roles: clusters of `scaling_cases`, with each row twice."""

import numpy as np
from hypothesis import strategies as st
from scaling_cases import (
    busy_scaled_scenario,
    failing_multicasts,
    scaled_scenario,
    small_scaled_scenarios,
    with_memory,
)
from serving_cases import with_batches, with_prefixes, with_ranks

from workbench.serving.model.lowered import COLOCATED, DECODE, PREFILL, Instances, Lowered, Network
from workbench.serving.model.scaled import EMPTY, UP
from workbench.serving.policy import SCALERS
from workbench.serving.policy.scalers import CHAINS

ROLES = SCALERS["roles"]
OF_GROUPS = (
    "kind", "par", "min_rows", "max_rows", "up_ticks", "down_ticks", "down_step", "source", "control_s", "fixed_s",
    "multicast_s", "keep_s", "switch_whole", "memory_first", "local_s", "hosts_send",
)  # fmt: skip
OF_ROWS = ("place", "host", "dram_s", "piped_form")


def with_scaled_roles(rng: np.random.Generator, base: Lowered) -> Lowered:
    """The same load, on places that most models use for instances that prefill and for others that decode."""
    grid = bool((4 * base.requests.arrival_s % 1 == 0).all())
    models = len(base.scaling.kind)
    split = (rng.random(models) < 0.9) & np.isin(np.arange(models), base.instances.model)
    split[base.instances.model[0]] = True
    rates = np.array([2.0, 8.0, 16.0, 64.0, np.inf]) if grid else rng.lognormal(2, 1.5, 4)
    rates *= 2.0 ** max(0, round(np.log2(base.requests.prompt.mean() / 8)))
    most = len(base.instances.model) * 2
    kind = np.where(rng.random(2 * models) < 0.5, ROLES, np.tile(base.scaling.kind, 2))
    kind[np.tile(~split, 2)] = base.scaling.kind[0] % ROLES
    network = Network(
        rng.choice(rates, most),
        rng.choice(rates, most),
        float(rng.choice([0.0, 0.25, 1.0]) if grid else rng.choice([0.0, 0.3]) * rng.random()),
        rng.choice([0.0, 1.0, 4.0] if grid else [0.3, 1.7], models),
    )
    return doubled(
        base,
        split,
        rng.integers(0, 2, len(base.instances.model)),
        network,
        kind=kind,
        par=np.where(
            (kind == ROLES)[:, None],
            rng.choice([0.5, 1, 2, 6, 20, 80], (2 * models, 8)),
            np.tile(base.scaling.par, (2, 1)),
        ),
        keep_s=rng.permutation(np.tile(base.scaling.keep_s, 2)),
        max_rows=rng.permutation(np.tile(base.scaling.max_rows, 2)),
        source=rng.permutation(np.tile(base.scaling.source, 2)),
    )


def doubled(base: Lowered, split, first, network: Network, batch: int = 0, **changes) -> Lowered:
    """Every row of the models that are split becomes one that prefills and one that decodes.

    Parameters:
        split: which models those are.
        first: of each row, which of both is up if it was: 0 or 1.
        network: with numbers for twice as many rows.
        batch: prompt tokens that those that prefill take when they are free; 0 takes any at any time.
        changes: fields of `Scaling` with numbers for both groups of every model.
    """
    given, row = base.scaling, np.arange(len(base.instances.model))
    twice = split[base.instances.model]
    rows = np.repeat(row, 1 + twice)
    second = np.concatenate([[False], rows[1:] == rows[:-1]])
    role = np.where(twice[rows], np.where(second, DECODE, PREFILL), COLOCATED)
    instances = Instances(*(column[rows] for column in base.instances))
    instances = instances._replace(role=role, batch=batch * (role == PREFILL))
    started = (given.start_state[rows] == UP) & (~twice[rows] | (second == first[rows]))
    of_groups = {name: np.concatenate([getattr(given, name)] * 2) for name in OF_GROUPS} | changes
    none = np.full(of_groups["multicast_s"].shape, np.inf)
    scaling = given._replace(
        start_state=np.where(started, UP, EMPTY),
        piped_s=none,
        piped_with=np.full(none.shape, -1),
        local_piped_s=none[:, 0].copy(),
        local_with=np.full(none[:, 0].shape, -1),
        **{name: getattr(given, name)[rows] for name in OF_ROWS},
        **of_groups,
    )
    ports = Network(network.egress[: len(rows)], network.ingress[: len(rows)], *network[2:])
    return base._replace(instances=instances, scaling=scaling, network=ports)


def scaled_role_scenario(seed: int) -> Lowered:
    """Half of them on a grid of times; with failing sources, loads from memory, ranks, prefixes, or none of these."""
    rng = np.random.default_rng([seed, 11])
    if seed % 40 == 0:
        base = busy_scaled_scenario(rng)
    else:
        base = failing_multicasts(rng) if seed % 4 == 1 else scaled_scenario(rng)
    base = with_memory(rng, base) if seed % 3 == 0 else base
    base = with_scaled_roles(rng, base)
    base = with_batches(seed, base) if seed % 40 else base  # those load for ages
    base = with_ranks(rng, base) if seed % 2 else base
    return with_prefixes(rng, base) if seed % 8 > 5 else base


@st.composite
def small_scaled_role_scenarios(draw) -> Lowered:
    """One of `small_scaled_scenarios` whose models are split, or all but one, drawn number by number."""
    base = draw(small_scaled_scenarios())
    models, n = len(base.scaling.kind), len(base.instances.model)

    def each(strategy, size):
        return np.array(draw(st.lists(strategy, min_size=size, max_size=size)))

    split = each(st.booleans(), models)
    split[0] = True  # every model has rows
    rates = st.sampled_from([1.0, 2.0, 4.0, np.inf])
    network = Network(
        each(rates, 2 * n),
        each(rates, 2 * n),
        draw(st.sampled_from([0.0, 0.25, 1.0])),
        each(st.sampled_from([0.0, 0.25, 1.0, 0.3]), models),
    )
    kind = np.where(np.tile(split, 2), each(st.integers(0, ROLES), 2 * models), each(st.integers(0, 4), 2 * models))
    return doubled(
        base,
        split,
        each(st.integers(0, 1), n),
        network,
        batch=draw(st.sampled_from([0, 1, 5])),
        kind=kind,
        par=np.tile(each(st.sampled_from([0.5, 1.0, 2.0, 5.0, 20.0]), 8), (2 * models, 1)),
        min_rows=each(st.integers(0, 1), 2 * models),
        keep_s=each(st.sampled_from([0.0, 0.25, 1.0, np.inf]), 2 * models),
    )


@st.composite
def small_sending_scenarios(draw) -> Lowered:
    """One of `small_scaled_role_scenarios` in which most weights are sent over the links of KV."""
    base = draw(small_scaled_role_scenarios())
    groups, hosts = len(base.scaling.kind), len(base.scaling.cache_bytes)

    def each(strategy, size=groups):
        return np.array(draw(st.lists(strategy, min_size=size, max_size=size)))

    scaling = base.scaling._replace(
        source=np.where(each(st.integers(0, 3)) > 0, CHAINS, base.scaling.source),
        chains=each(st.integers(1, 3)),
        lag_s=each(st.sampled_from([0.0, 0.25, 1.0])),
        decode_first=each(st.integers(0, 1)),
        near_s=each(st.sampled_from([0.0, 0.5, np.inf])),
        memory_first=each(st.integers(0, 1)),
        hosts_send=each(st.integers(0, 1)),
    )
    network = base.network._replace(host_egress=each(st.sampled_from([1.0, 2.0, np.inf]), hosts))
    return base._replace(scaling=scaling, network=network)
