"""Clusters whose weights come by chains over the links of KV, for tests."""

import numpy as np
from role_pool_cases import role_pool
from scaling_cases import failing_multicasts, scaled_scenario

from workbench.serving.model.lowered import Lowered, Network
from workbench.serving.policy.scalers import CHAINS


def with_chains(rng: np.random.Generator, base: Lowered) -> Lowered:
    """The same, with weights of most groups over links, if there are any, that KV uses too."""
    given = base.scaling
    grid = bool((4 * base.requests.arrival_s % 1 == 0).all())
    groups, hosts, n = len(given.kind), len(given.cache_bytes), len(given.place)
    rates = np.array([1.0, 2.0, 4.0, np.inf]) if grid else rng.lognormal(1, 1, 4)
    network = base.network or Network(
        rng.choice(rates, n), rng.choice(rates, n), float(rng.choice([0.0, 0.25])), np.ones(len(given.bytes))
    )
    quarters = rng.choice([0.0, 0.25, 1.0], groups)
    scaling = given._replace(
        source=np.where(rng.random(groups) < 0.8, CHAINS, given.source),
        chains=rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 3], groups),
        lag_s=quarters if grid else quarters * rng.random(groups),
        decode_first=rng.integers(0, 2, groups),
        near_s=rng.choice([0.0, 0.5, np.inf], groups),
        memory_first=rng.integers(0, 2, groups),
        hosts_send=rng.integers(0, 2, groups),
    )
    return base._replace(network=network._replace(host_egress=rng.choice(rates, hosts)), scaling=scaling)


def with_live(rng: np.random.Generator) -> Lowered:
    """One of `chain_scenario` whose tails help, with long prompts in small steps."""
    base = chain_scenario(rng)
    given, grid = base.scaling, bool((4 * base.requests.arrival_s % 1 == 0).all())
    groups = len(given.kind)
    scaling = given._replace(
        live=np.where(given.source == CHAINS, rng.choice([0, 1, 1, 2, 3], groups), 0),
        layers=rng.choice([1, 4, 7, 32], groups),
        activation_s=rng.choice([0.0, 1 / 1024], groups) if grid else rng.choice([0.0, 1e-4], groups),
        promise_s=rng.choice([1.0, 4.0], groups),
        waits=rng.integers(0, 2, groups),
        bytes=given.bytes * 4,
        cache_bytes=given.cache_bytes * 4,
    )
    requests = base.requests._replace(prompt=base.requests.prompt * 4)
    return base._replace(
        scaling=scaling, requests=requests, instances=base.instances._replace(blocks=base.instances.blocks * 4)
    )


def chain_scenario(rng: np.random.Generator, most_requests=30) -> Lowered:
    """With roles, without them, or with many targets that fail meanwhile."""
    kind = int(rng.integers(3))
    if kind == 0:
        return with_chains(rng, role_pool(rng, most_requests))
    return with_chains(rng, scaled_scenario(rng, most_requests) if kind == 1 else failing_multicasts(rng))
