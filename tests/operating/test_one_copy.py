"""BlitzScale's promises about weights, in random runs of its systems: one copy in hosts' memory, each target reached
once, and nothing sent by those who send KV while others can."""

from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from operating_cases import APART, WEIGHTS, quarters, table

import workbench as wb
from workbench.operating.simulating import resolved
from workbench.serving import Failure, LinkFailure, StepForm, Update
from workbench.serving.model import lower
from workbench.serving.model.lowered import DECODE, PREFILL
from workbench.serving.policy.scalers import CHAIN_TIER, SSD_TIER
from workbench.serving.simulated.chains import Chains
from workbench.serving.simulated.run import Cluster

NAMES = ("a", "b", "c")
STEP = StepForm(compute=(0.2, 1e-3, 0.0, 0.0, 0.01))


def random_run(seed, *, failing=True):
    """Bursts of one to three models on hosts of two or three places, whose instances may all go; as `resolved` has it.

    Every other one is on a grid of times. Places, ways out and hosts' memories fail, and models get new weights.
    """
    rng = np.random.default_rng([seed, 61])
    grid, models, hosts, places = seed % 2, int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(1, 4))

    def moments(size, most):
        found = rng.uniform(0, most, size)
        return np.sort(np.round(found * 4) / 4 if grid else found)

    count = int(rng.integers(5, 40))
    arrival_s = np.sort(np.repeat(moments(4, 30), 10)[:count] + moments(count, 1))
    rows = [(float(t - arrival_s[0]), int(rng.integers(1, 400)), int(rng.integers(1, 12))) for t in arrival_s]
    trace = table(*rows, model=pl.Series(rng.choice(NAMES[:models], count)))
    happens = {}
    if failing:
        size = hosts * places
        happens["failures"] = [
            Failure(time_s=float(moments(1, 25)[0]), instance=int(p), back_s=float(rng.choice([26.0, np.inf])))
            for p in rng.choice(size, min(size - 1, int(rng.integers(0, 5))), replace=False)
        ]
        happens["link_failures"] = [
            LinkFailure(time_s=float(t), back_s=float(t) + 1.5, host=h) if rng.random() < 0.5 else
            LinkFailure(time_s=float(t), back_s=float(t) + 1.5, instance=h, way=str(rng.choice(["in", "out"])))
            for h, t in enumerate(moments(int(rng.integers(0, 3)), 15)) if h < hosts
        ]  # fmt: skip
        served = trace["model"].unique().sort().to_list()
        happens["updates"] = [
            Update(time_s=float(t), model=served[k % len(served)])
            for k, t in enumerate(moments(rng.integers(0, 3), 25))
        ][: len(served)]
    system = wb.system(
        APART[seed % len(APART)], least=int(rng.choice([0, 1])) if 2 * models <= hosts * places else 0,
        tick_s=float(rng.choice([0.25, 1.0])), reroute=bool(rng.integers(2)), near=bool(rng.integers(2)),
        autoscaler=str(rng.choice(["roles", "concurrency:requests=2"])), keep_s=float(rng.choice([0.0, 2.0])),
        **{"live": "always"} if seed % len(APART) == 0 else {},
    )  # fmt: skip
    return resolved(
        system, cluster=quarters(hosts, places, host_memory_bytes=3.5 * WEIGHTS), models="llama-3-8b", trace=trace,
        step=STEP, kv_tokens=2048, deployment=wb.deployment(colocated=False), **happens,
    )  # fmt: skip


def cluster_of(asked):
    return Cluster(lower(asked.scenario, asked.table, 0))


def look_at(cluster, look):
    """Run a cluster, looked at first and behind each event."""
    look()
    while cluster.clock.peek() <= np.finfo(float).max:
        cluster.clock.step()
        look()
    return cluster.outcome()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**20))
def test_hosts_keep_at_most_one_copy_of_each_model(seed):
    """One, on the host of the model's number, until a new version makes it void; then none until it is read there."""
    asked = random_run(seed)
    cluster = cluster_of(asked)
    caches = cluster.scaled.fleet.caches
    updated = {update.model: update.time_s for update in asked.scenario.updates}

    def look():
        for m, name in enumerate(asked.scenario.models):
            holders = [host for host, cache in enumerate(caches) if m in cache.last_use_s]
            assert holders in ([], [m % len(caches)])
            assert holders or cluster.clock.now >= updated.get(name, np.inf)

    out = look_at(cluster, look)
    if not updated:
        assert SSD_TIER not in out.loads[:, 3]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**20))
def test_every_target_is_reached_once(seed):
    """Without failures each load ends, its row is up then, and what its host gets is the model once: each row of a
    chain by one flow, each host of a ring by a part from each sender."""
    asked = random_run(seed, failing=False)
    cluster = cluster_of(asked)
    host = np.array([row.host for row in cluster.scaled.fleet.rows])
    out = look_at(cluster, lambda: None)
    loads, hops = out.loads, out.hops.astype(int)
    assert not np.isnan(loads[:, 1]).any()
    ups = {(time_s, row) for time_s, row, state in out.states if state == 2}
    assert {(load[1], load[2]) for load in loads} <= ups
    assert len(set(map(tuple, loads[:, [2, 5]]))) == len(loads)
    assert len(set(map(tuple, hops))) == len(hops)
    ring = asked.system.near and asked.system.chains != 0
    operation, size = out.chains[:, 3].astype(int), out.chains[:, 5]
    for number in np.unique(loads[loads[:, 3] == CHAIN_TIER, 5]).astype(int):
        rows = loads[loads[:, 5] == number, 2].astype(int)
        mine = hops[operation[hops[:, 0]] == number]
        assert set(mine[:, 1]) <= set(rows)
        for place in np.unique(host[rows]) if ring else rows:
            got = mine[(host[mine[:, 1]] if ring else mine[:, 1]) == place, 0]
            assert len(set(got)) == len(got)
            np.testing.assert_allclose(size[got].sum(), WEIGHTS, rtol=1e-12)


def test_nobody_who_sends_kv_sends_weights_while_others_can(monkeypatch):
    """Whatever fails: those chosen when rows start, or start anew, decode if anyone of the model does; a host only
    sends where no instance has the weights. It comes up often enough to mean something."""
    seen, choose = Counter(), Chains._senders

    def chosen(self, group, rows):
        found = choose(self, group, rows)
        having = self.fleet.readable(rows[0].model) if rows else []
        decoding = [row for row in having if row.instance.role == DECODE]
        roles = {row.instance.role for row in found if not isinstance(row, int)}
        if found and self.decode_first[group] and decoding:
            assert roles == {DECODE}
            seen["decoding ones, beside others"] += len(decoding) < len(having)
        hosts = [one for one in found if isinstance(one, int)]
        assert not (hosts and having)
        seen["hosts"] += bool(hosts)
        seen["prompts only"] += roles == {PREFILL}
        return found

    monkeypatch.setattr(Chains, "_senders", chosen)
    for seed in range(120):
        look_at(cluster_of(random_run(seed)), lambda: None)
    assert not {
        name: seen[name] for name in ("decoding ones, beside others", "hosts", "prompts only") if seen[name] < 8
    }
