"""Clusters in which all that may happen while weights move happens together, for tests."""

import numpy as np
from busy_role_cases import busy_scenario
from sent_weights_cases import with_chains
from serving_cases import with_prefixes, with_ranks

from workbench.serving.model import Outages, Updates
from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import PREFILL, Failures, Lowered, Outcome
from workbench.serving.policy.scalers import CHAINS


def everything(seed: int, batched: bool = False) -> Lowered:
    """One of `busy_scenario` with weights by chains whose tails help, mostly by a promise; hosts or places and links
    fail, hosts' memories are short and known late, prompts begin alike, and one to five new versions come, in half of
    the runs when something happens without them.

    Parameters:
        batched: whether nearly all that compute prompts take batches of them when they are free, some in few blocks.
    """
    rng = np.random.default_rng([seed, 77])
    busy = _batched(seed, busy_scenario(seed)) if batched else busy_scenario(seed)
    base = with_prefixes(rng, with_chains(rng, busy))
    base = with_ranks(rng, base) if rng.random() < 0.5 else base
    grid = bool((4 * base.requests.arrival_s % 1 == 0).all())
    end_s = float(base.requests.arrival_s[-1]) + 4

    def moments(size):
        drawn = rng.random(size) * end_s
        return np.floor(4 * drawn) / 4 if grid else drawn

    base = _in_want(rng, base, grid)
    base = base._replace(failures=_broken(rng, base, moments), outages=_cut(rng, base, moments))
    base = base._replace(updates=Updates(np.empty(0), np.empty(0, np.int64)))
    models, count = len(base.scaling.bytes), int(rng.integers(1, 6))
    when = moments(count)
    if rng.random() < 0.5:
        kinds = [kind for kind in _happenings(base, run_compiled(checked(base)), end_s) if kind.size]
        when = np.array([rng.choice(kinds[rng.integers(len(kinds))]) for _ in when])
    pairs = sorted({*zip(when.tolist(), rng.integers(0, models, count).tolist(), strict=True)})
    time_s, model = zip(*pairs, strict=True)
    return base._replace(updates=Updates(np.array(time_s), np.array(model, np.int64)))


def _batched(seed: int, base: Lowered) -> Lowered:
    rng, instances = np.random.default_rng([seed, 4242]), base.instances
    prefills, size = instances.role == PREFILL, instances.role.size
    batch = rng.choice([1, 4, 6, 20, 60, 400, 2**40], size)
    if rng.random() < 0.5:
        batch[:] = rng.choice([1, 6, 20, 60, 400])
    if rng.random() < 0.2:
        batch[rng.random(size) < 0.3] = 0
    if rng.random() < 0.3:
        instances = instances._replace(
            blocks=np.where(prefills, np.maximum(4, instances.blocks // 4), instances.blocks),
            reserve=np.where(prefills, rng.integers(0, 2), instances.reserve),
        )
    if rng.random() < 0.3:
        instances = instances._replace(limit=np.full(size, rng.choice([1, 2, 3])))
    return base._replace(instances=instances._replace(batch=batch * prefills))


def _in_want(rng: np.random.Generator, base: Lowered, grid: bool) -> Lowered:
    """Long prompts in small steps, large weights, short memories, and tails that may help."""
    given = base.scaling
    groups, models, hosts = len(given.kind), len(given.bytes), len(given.cache_bytes)
    scaling = given._replace(
        live=np.where(given.source == CHAINS, rng.choice([0, 1, 2, 3, 3, 3], groups), 0),
        promise_s=rng.choice([0.0, 0.5, 1.0, 4.0, 8.0], groups),
        waits=rng.integers(0, 2, groups),
        layers=rng.choice([1, 4, 7, 32], groups),
        activation_s=rng.choice([0.0, 1 / 1024], groups) if grid else rng.choice([0.0, 1e-4], groups),
        reroute=rng.integers(0, 2, groups),
        mutate=np.where(np.arange(groups) >= models, rng.choice([0, 1, 2, 2, 2], groups), 0),
        bytes=given.bytes * rng.choice([1, 4, 12]),
        cache_bytes=rng.choice([0.0, 9.0, 33.0, 97.0, np.inf], hosts),
        ttl_s=rng.choice([0.0, 2.0, 5.0, np.inf], models),
        cached=rng.integers(0, 2, (hosts, models)),
        pinned=(rng.random((hosts, models)) < rng.choice([0.0, 0.4])).astype(np.int64),
        ssd_each_bytes_per_s=rng.choice([1.0, 2.5, np.inf], hosts),
        stale_s=float(rng.choice([0.0, 1.0, 4.0])),
        detect_s=float(rng.choice([0.0, 0.25, 1.0])),
        stays=rng.integers(0, 2, groups) * (np.arange(groups) >= models),
    )
    requests, instances = base.requests, base.instances
    if rng.random() < 0.7:
        requests = requests._replace(prompt=requests.prompt * 4)
        instances = instances._replace(
            blocks=instances.blocks * 4, budget=np.minimum(instances.budget, 8), form=instances.form * 0.25
        )
    return base._replace(requests=requests, instances=instances, scaling=scaling)


def _broken(rng: np.random.Generator, base: Lowered, moments) -> Failures:
    """One or two places or whole hosts fail."""
    place, until, found = base.scaling.place, {}, []
    host_of = np.zeros(1 + place.max(), np.int64)
    host_of[place] = base.scaling.host
    for time_s in sorted(moments(int(rng.integers(1, 3))).tolist()):
        back_s = time_s + float(rng.choice([0.25, 1.0, 3.0, np.inf]))
        whole = rng.random() < 0.4
        hit = np.flatnonzero(host_of == rng.choice(host_of)) if whole else rng.integers(len(host_of), size=1)
        for p in hit.tolist():
            if time_s > until.get(p, -1.0):
                found.append((time_s, p, back_s))
                until[p] = back_s
    time_s, places, back_s = zip(*sorted(found), strict=True)
    return Failures(np.array(time_s), np.array(places, np.int64), np.array(back_s))


def _cut(rng: np.random.Generator, base: Lowered, moments) -> Outages:
    """Some links fail once, or twice in a row."""
    ports = 2 * (1 + int(base.scaling.place.max())) + len(base.scaling.cache_bytes)
    found = []
    for port in rng.permutation(ports)[: int(rng.integers(1, ports + 1))].tolist():
        time_s = float(moments(1)[0])
        back_s = time_s + float(rng.choice([0.25, 0.5, 2.0]))
        found += [(time_s, port, back_s), (back_s, port, back_s + 0.5)][: 1 + (rng.random() < 0.3)]
    time_s, port, back_s = zip(*sorted(found), strict=True)
    return Outages(np.array(time_s), np.array(port, np.int64), np.array(back_s))


def _happenings(base: Lowered, calm: Outcome, end_s: float) -> list[np.ndarray]:
    """Instants at which something happens in a run, by kind."""
    kinds = [
        calm.states[:, 0], calm.loads[:, 1], calm.loads[:, :2].mean(axis=1), calm.ticks[:, 0], calm.flows[:, 1],
        calm.chains[:, 1], calm.assists[:, 0], calm.assists[:, 1], calm.iteration_end_s, base.failures.time_s,
        base.failures.back_s, base.outages.time_s, base.outages.back_s, base.requests.arrival_s,
    ]  # fmt: skip
    return [kind[(kind >= 0) & (kind < end_s)] for kind in kinds]
