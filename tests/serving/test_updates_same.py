"""New versions of weights: compiled and SimPy engine, written apart from one text, give the same bits."""

from collections import Counter

import numpy as np
from busy_role_cases import busy_scenario
from hypothesis import given, settings
from hypothesis import strategies as st
from piped_cases import small_piped_scenarios
from scaled_role_cases import scaled_role_scenario, small_sending_scenarios
from scaling_cases import failing_multicasts, scaled_scenario, small_scaled_scenarios, with_memory, with_pipelines
from sent_weights_cases import chain_scenario, with_chains, with_live
from serving_cases import with_prefixes, with_ranks
from serving_outcomes import differences

from workbench.serving.model import Outages, Updates
from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import COLOCATED, DONE, Lowered, Outcome
from workbench.serving.model.scaled import UP, WARM
from workbench.serving.simulated import simulate
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.host_cache import HostCache
from workbench.serving.simulated.migrations import Migrations
from workbench.serving.simulated.shared_ssd import SharedSSD
from workbench.serving.simulated.weights import Weights


def renewed(base: Lowered, moments, models) -> Lowered:
    """The same with new versions of models at some moments; twice the same pair counts once."""
    pairs = sorted({*zip(moments, models, strict=True)})
    time_s, model = (np.array(column) for column in zip(*pairs, strict=True))
    return base._replace(updates=Updates(time_s.astype(float), model.astype(np.int64)))


def busier(rng: np.random.Generator, base: Lowered) -> Lowered:
    """The same where more groups always want a row, weights that leave memory are looked for, and links fail."""
    given, grid = base.scaling, bool((4 * base.requests.arrival_s % 1 == 0).all())
    low = np.maximum(given.min_rows, rng.integers(0, 2, len(given.kind)))
    late = {"stale_s": 1.0, "detect_s": 0.25} if rng.random() < 0.3 else {}
    scaling = given._replace(min_rows=low, max_rows=np.maximum(given.max_rows, low), **late)
    if base.network is None:
        return base._replace(scaling=scaling)
    ports = 2 * (1 + int(given.place.max())) + len(given.cache_bytes)
    fail_s = rng.random(ports) * float(base.requests.arrival_s[-1])
    fail_s = np.floor(4 * fail_s) / 4 if grid else fail_s
    one = sorted(zip(fail_s.tolist(), range(ports), strict=True))[:: int(rng.integers(1, 4))]
    time_s, port = np.array([when for when, _ in one]), np.array([which for _, which in one])
    scaling = scaling._replace(reroute=rng.integers(0, 2, len(given.kind)))
    return base._replace(scaling=scaling, outages=Outages(time_s, port, time_s + 0.5))


def any_run(seed: int) -> Lowered:
    """In turn colocated, with roles, with weights over links, with tails that help, with pipelines, with loads from
    memory, with busy rows that change roles; places and links fail.

    One to five new versions; in half of the runs when something happens without them, or in the middle of loads.
    """
    rng = np.random.default_rng([seed, 23])
    base = (
        lambda: scaled_scenario(rng, 40),
        lambda: scaled_role_scenario(seed),
        lambda: chain_scenario(rng, 40),
        lambda: with_live(rng),
        lambda: with_pipelines(rng, failing_multicasts(rng)),
        lambda: with_memory(rng, with_pipelines(rng, scaled_scenario(rng, 40))),
        lambda: failing_multicasts(rng),
        lambda: with_chains(rng, scaled_role_scenario(seed)),
        lambda: busy_scenario(seed),
    )[seed % 9]()
    base = busier(rng, with_ranks(rng, base) if seed % 5 == 0 else base)
    base = with_prefixes(rng, base) if seed % 7 == 0 else base
    end_s, count = float(base.requests.arrival_s[-1]) + 4, int(rng.integers(1, 6))
    moments = rng.random(count) * end_s
    if rng.random() < 0.5:
        calm = run_compiled(base)
        loads = calm.loads[:, :2]
        kinds = [calm.states[:, 0], loads[:, 1], loads.mean(axis=1), calm.ticks[:, 0], calm.flows[:, 1]]
        kinds += [calm.chains[:, 1], calm.iteration_end_s, base.failures.time_s, base.outages.time_s]
        kinds = [kind[(kind >= 0) & (kind < end_s)] for kind in kinds]
        kinds = [kind for kind in kinds if kind.size] or [moments]
        moments = np.array([rng.choice(kinds[rng.integers(len(kinds))]) for _ in moments])
    return renewed(base, moments.tolist(), rng.integers(0, len(base.scaling.bytes), count).tolist())


@st.composite
def small_runs(draw) -> Lowered:
    """A small cluster of any kind and up to three new versions, half of them at quarters of seconds."""
    base = draw(st.one_of(small_scaled_scenarios(), small_piped_scenarios(), small_sending_scenarios()))
    quarters = draw(st.booleans())
    moment = st.integers(0, 40).map(lambda k: k / 4) if quarters else st.floats(0, 10)
    pair = st.tuples(moment, st.integers(0, len(base.scaling.bytes) - 1))
    return renewed(base, *zip(*draw(st.lists(pair, min_size=1, max_size=3)), strict=True))


@settings(max_examples=200, deadline=None)
@given(small_runs())
def test_small_clusters_with_new_versions_end_the_same(lowered):
    lowered = checked(lowered)
    assert differences(run_compiled(lowered), simulate(lowered)) == []


def occurrences(lowered: Lowered, run: Outcome) -> Counter:
    """How often what may go apart came up in a run."""
    seen, time_s = Counter(), lowered.updates.time_s
    seen["done with old weights"] = (run.weight_version[run.status == DONE] == 0).sum()
    seen["done with new weights"] = (run.weight_version[run.status == DONE] > 0).sum()
    seen["restarts"] = run.restarts.sum()
    seen["nothing made since a restart"] = ((run.restarts > 0) & (run.made == 0)).sum()
    seen["loads of new versions"] = (run.load_version > 0).sum()
    seen["evictions"] = run.evictions[run.restarts > 0].sum()
    with_roles = (lowered.instances.role != COLOCATED).any()
    seen["restarts with roles"] = run.restarts.sum() if with_roles else 0
    for state, name in ((UP, "loads that end"), (WARM, "rows that become warm")):
        seen[f"{name} at updates"] = np.isin(run.states[run.states[:, 2] == state, 0], time_s).sum()
    for name, moments in (
        ("ticks", run.ticks[:, 0]), ("ends of steps", run.iteration_end_s), ("failures", lowered.failures.time_s),
        ("failures of links", lowered.outages.time_s), ("arrivals", lowered.requests.arrival_s),
        ("transfers", run.flows[:, 1]),
    ):  # fmt: skip
        seen[f"{name} at updates"] = np.isin(time_s, moments).sum()
    seen["several updates at an instant"] = time_s.size - np.unique(time_s).size
    return seen


def test_large_clusters_with_new_versions_end_the_same(monkeypatch):
    """And all that may happen does, often enough for that to mean something; every fifth run is made step by step."""
    seen, drop, leave_pipeline = Counter(), Migrations.drop, Fleet.leave_pipeline
    outdate, stop, forget, release = Weights.outdate, SharedSSD.stop, HostCache.drop, Fleet.released
    inside = []

    def counted(name, called):
        def wrapped(self, *given):
            seen[name] += bool(inside)
            return called(self, *given)

        return wrapped

    def counted_outdate(self, model):
        for one in self.operations.values():
            seen[f"begun again: {type(one).__name__}"] += one.group % len(self.size) == model
        inside.append(model)
        outdate(self, model)
        inside.pop()

    def counted_stop(self, load):
        seen["reads that are given up"] += bool(inside) and load in self.left
        stop(self, load)

    def counted_drop(self, request):
        seen["KV that is left"] += 1
        drop(self, request)

    def counted_forget(self, model):
        seen["pinned weights that leave"] += model in self.pinned
        forget(self, model)

    def counted_release(self, row):
        seen["read until the update"] += bool(inside) and row.state == WARM and not row.uses
        release(self, row)

    monkeypatch.setattr(Weights, "outdate", counted_outdate)
    monkeypatch.setattr(SharedSSD, "stop", counted_stop)
    monkeypatch.setattr(Migrations, "drop", counted_drop)
    monkeypatch.setattr(HostCache, "drop", counted_forget)
    monkeypatch.setattr(Fleet, "released", counted_release)
    monkeypatch.setattr(Fleet, "leave_pipeline", counted("pipelines that break", leave_pipeline))
    for seed in range(400):
        lowered = checked(any_run(seed))
        run = simulate(lowered)
        assert differences(run_compiled(lowered, jumps=seed % 5 > 0), run) == [], f"seed {seed}"
        seen += occurrences(lowered, run)
    rare = {name: count for name, count in seen.items() if count < 5}
    assert not rare, seen
    again = {"begun again: Chain", "begun again: Operation", "reads that are given up", "pipelines that break"}
    assert again | {"KV that is left", "pinned weights that leave"} <= set(seen), seen
