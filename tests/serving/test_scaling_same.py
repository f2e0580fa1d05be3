"""Clusters that change their size: compiled and SimPy engine, written apart from one text, give the same bits."""

from collections import Counter
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from piped_cases import small_piped_scenarios
from scaled_role_cases import with_scaled_roles
from scaling_cases import (
    any_scenarios,
    busy_scaled_scenario,
    growing,
    piped_scenarios,
    scaled_scenario,
    small_scaled_scenarios,
    with_memory,
    with_pipelines,
)
from scaling_cases import row as empty_row
from serving_cases import asked, with_prefixes, with_ranks
from serving_outcomes import differences

from workbench.serving.model import Lowered, Outcome
from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.scaled import DEAD, DRAINING, EMPTY, PIPED, STARTING, UP, WARM
from workbench.serving.policy import SCALERS, SOURCES
from workbench.serving.policy.scalers import TIERS_BY_NUMBER
from workbench.serving.simulated import simulate
from workbench.serving.simulated.autoscaler import Autoscaler
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.host_cache import HostCache
from workbench.serving.simulated.shared_ssd import SharedSSD
from workbench.serving.simulated.weights import Weights


def occurrences(lowered: Lowered, run: Outcome) -> Counter:
    """How often what may go apart came up in a run."""
    seen = Counter()
    given, states = lowered.scaling, run.states
    now = given.start_state.tolist()
    for _, row, state in states.tolist():
        seen[now[int(row)], int(state)] += 1
        now[int(row)] = int(state)
    kinds = given.kind[run.ticks[:, 1].astype(int)]
    seen.update(SCALERS_BY_NUMBER[k] for k in kinds[run.ticks[:, 2] > run.ticks[:, 3]])
    seen.update("less " + SCALERS_BY_NUMBER[k] for k in kinds[run.ticks[:, 2] < run.ticks[:, 3]])
    models = lowered.instances.model[run.loads[:, 2].astype(int)]
    seen.update("from " + SOURCES_BY_NUMBER[k] for k in given.source[models])
    seen.update(TIERS_BY_NUMBER[k] for k in run.loads[:, 3].astype(int))
    seen["several sources"] += (run.loads[:, 4] > 1).sum()
    seen["lost"] += np.isnan(run.loads[:, 1]).sum()
    seen["helped"] += run.loads[:, 7].sum()
    seen["first token"] += (~np.isnan(run.loads[:, 6])).sum()
    ticks = run.ticks[:, 0]
    changed = {state: states[states[:, 2] == state, 0] for state in (STARTING, UP, WARM, EMPTY, DEAD)}
    seen["loads at ticks"] += np.isin(run.loads[:, 1], ticks).sum()
    seen["ends of warm rows at ticks"] += np.isin(changed[EMPTY], ticks).sum()
    seen["failures at ticks"] += np.isin(changed[DEAD], ticks).sum()
    seen["failures with loads"] += np.isin(changed[DEAD], changed[UP]).sum()
    seen["arrivals at ticks"] += np.isin(lowered.requests.arrival_s, ticks).sum()
    seen["steps at ticks"] += np.isin(run.iteration_end_s, ticks).sum()
    seen["steps with loads"] += np.isin(run.iteration_end_s, run.loads[:, 1]).sum()
    return seen


SCALERS_BY_NUMBER = {number: name for name, number in SCALERS.items()}
SOURCES_BY_NUMBER = {number: name for name, number in SOURCES.items()}
STATE_CHANGES = [
    (EMPTY, STARTING), (EMPTY, DEAD), (STARTING, UP), (STARTING, DEAD), (UP, DRAINING), (UP, WARM), (UP, DEAD),
    (DRAINING, UP), (DRAINING, WARM), (DRAINING, DEAD), (WARM, UP), (WARM, EMPTY), (WARM, DEAD), (DEAD, EMPTY),
]  # fmt: skip
WITH_NETWORKS = {"roles", "chains", "resident", "chain", "near"}
RULES = [name for name in SCALERS if name not in WITH_NETWORKS]
TIERS = [name for name in TIERS_BY_NUMBER if name not in WITH_NETWORKS]
WANTED = [
    *STATE_CHANGES, *RULES, *("less " + name for name in RULES if name != "none"),
    *("from " + name for name in SOURCES if name not in WITH_NETWORKS), *TIERS, "several sources", "lost", "helped",
    "first token", "loads at ticks", "ends of warm rows at ticks", "failures at ticks", "failures with loads",
    "arrivals at ticks", "steps at ticks", "steps with loads", "evicted from a cache", "expired in a cache", "stolen",
    "restarted", "restarted from another source", "freed late", "shared SSD",
]  # fmt: skip


def counting(monkeypatch, seen: Counter):
    """Count what leaves no trace of its own in the outcome."""
    trim, has, steal, again = HostCache.trim, HostCache.has, Autoscaler._take_from_others, Weights.begin_again
    released, start = Fleet.released, SharedSSD.start

    def counted_trim(self):
        before = len(self.last_use_s)
        trim(self)
        seen["evicted from a cache"] += before - len(self.last_use_s)

    def counted_has(self, model):
        before = len(self.last_use_s)
        found = has(self, model)
        seen["expired in a cache"] += before - len(self.last_use_s)
        return found

    def counted_steal(self, model, count):
        rows = steal(self, model, count)
        seen["stolen"] += len(rows)
        return rows

    def counted_again(self, operation):
        again(self, operation)
        seen["restarted"] += 1
        seen["restarted from another source"] += any(self.fleet.of(operation.group, UP, DRAINING, WARM))

    def counted_release(self, row):
        seen["freed late"] += row.state == WARM and row.warm_until_s <= self.clock.now and not row.uses
        released(self, row)

    def counted_start(self, load, size):
        start(self, load, size)
        seen["shared SSD"] += len(self.left) > 1

    monkeypatch.setattr(HostCache, "trim", counted_trim)
    monkeypatch.setattr(HostCache, "has", counted_has)
    monkeypatch.setattr(Autoscaler, "_take_from_others", counted_steal)
    monkeypatch.setattr(Weights, "begin_again", counted_again)
    monkeypatch.setattr(Fleet, "released", counted_release)
    monkeypatch.setattr(SharedSSD, "start", counted_start)


@settings(max_examples=400, deadline=None)
@given(small_scaled_scenarios())
def test_small_clusters_end_the_same(lowered):
    assert differences(run_compiled(lowered), simulate(lowered)) == []


def test_large_clusters_end_the_same(monkeypatch):
    """And all that may happen does, often enough for that to mean something."""
    seen = Counter()
    counting(monkeypatch, seen)
    for seed, lowered in enumerate(any_scenarios()):
        run = simulate(lowered)
        assert differences(run_compiled(lowered), run) == [], f"seed {seed}"
        seen += occurrences(lowered, run)
    rare = {name: seen[name] for name in WANTED if seen[name] < 20}
    assert not rare, seen


@settings(max_examples=400, deadline=None)
@given(small_piped_scenarios())
def test_small_clusters_with_pipelines_end_the_same(lowered):
    assert differences(run_compiled(lowered), simulate(lowered)) == []


PIPED_CHANGES = [(STARTING, PIPED), (PIPED, UP), (PIPED, STARTING), (PIPED, DEAD)]


def test_large_clusters_with_pipelines_end_the_same():
    """And pipelines form, switch and break, with requests in them; half of the runs have ranks, or prefixes."""
    seen = Counter()
    for seed, lowered in enumerate(piped_scenarios()):
        rng = np.random.default_rng(seed)
        if seed % 2:
            lowered = with_ranks(rng, lowered)
        elif seed % 20 == 0:
            lowered = with_pipelines(rng, busy_scaled_scenario(rng))
        if seed % 4 > 1:
            lowered = with_prefixes(rng, lowered)
        run = simulate(lowered)
        for jumps in (True, False):
            assert differences(run_compiled(lowered, jumps=jumps), run) == [], f"seed {seed}, jumps {jumps}"
        seen += occurrences(lowered, run)
        piped = ~np.isnan(run.loads[:, 8])
        seen["helped while piped or later"] += run.loads[piped, 7].sum()
        seen["first token while piped"] += (run.loads[piped, 6] < run.loads[piped, 1]).sum()
        seen["moves"] += run.moves.sum()
        seen["cached"] += (run.cached > 0).sum()
    wanted = [*PIPED_CHANGES, "helped while piped or later", "first token while piped", "moves", "cached"]
    rare = {name: seen[name] for name in wanted if seen[name] < 100}
    assert not rare, seen


def test_busy_clusters_end_the_same():
    """Hundreds of long requests on up to twelve places that come and go, with many steps between two ticks."""
    steps = starts = lost = 0
    for seed in range(40):
        lowered = busy_scaled_scenario(np.random.default_rng(seed))
        run = simulate(lowered)
        for jumps in (True, False):
            assert differences(run_compiled(lowered, jumps=jumps), run) == [], f"seed {seed}, jumps {jumps}"
        steps += run.iteration_end_s.size
        starts += len(run.loads)
        lost += np.isnan(run.loads[:, 1]).sum()
    assert min(steps / 1000, starts, 5 * lost) > 100


def with_late_news(seed: int) -> Lowered:
    """Little memory, which weights leave, and for some time nobody knows it; every second cluster also has roles."""
    rng = np.random.default_rng([seed, 31])
    base = scaled_scenario(rng)
    given = with_memory(rng, base).scaling if seed % 3 == 0 else base.scaling
    room = given.bytes.max() * rng.choice([1.0, 1.5, 2.0], len(given.cache_bytes))
    scaling = given._replace(
        source=np.where(rng.random(len(given.kind)) < 0.7, SOURCES["tiers"], given.source),
        cache_bytes=room,
        stale_s=float(rng.choice([1.0, 4.0, 30.0])),
        detect_s=float(rng.choice([0.0, 0.25, 1.0])),
    )
    base = base._replace(scaling=scaling)
    return with_scaled_roles(rng, base) if seed % 2 else base


def test_weights_that_are_looked_for_in_vain_come_at_the_same_times(monkeypatch):
    """Half of the clusters have all their times on a grid."""
    seen, left_within = Counter(), HostCache.left_within

    def counted(self, model, seconds):
        left = left_within(self, model, seconds)
        seen["in vain" if left else "read at once"] += 1
        return left

    monkeypatch.setattr(HostCache, "left_within", counted)
    for seed in range(200):
        lowered = checked(with_late_news(seed))
        assert differences(run_compiled(lowered), simulate(lowered)) == [], f"seed {seed}"
    assert min(seen.values()) > 50, seen


@pytest.mark.parametrize(
    ("tick_s", "first", "later", "bytes_per_s"), [(1.1, 3, 3, 0.1), (0.9, 1, 3, 3), (0.9, 5, 3, 3)]
)
def test_a_read_that_rounding_ends_when_another_starts(tick_s, first, later, bytes_per_s):
    """The first was to end one float after the tick at which the second starts; at that tick it has nothing left."""
    start_s, now_s, size = first * tick_s, (first + later) * tick_s, later * tick_s * bytes_per_s
    assert size - bytes_per_s * (now_s - start_s) <= 0 < start_s + size / bytes_per_s - now_s
    requests = [asked((first - 0.5) * tick_s, 1, 99), asked((first + later - 0.5) * tick_s, 1, 99)]
    settings = {"kind": SCALERS["concurrency"], "source": SOURCES["tiers"], "control_s": 0}
    lowered = growing(
        requests,
        [empty_row(0), empty_row(1)],
        bytes=size,
        ssd_bytes_per_s=bytes_per_s,
        tick_s=tick_s,
        until_s=99,
        **settings,
    )
    run = simulate(lowered)
    assert run.loads[0, :2].tolist() == [start_s, np.nextafter(now_s, inf)]
    assert run.loads[1, 0] == now_s
    assert differences(run_compiled(lowered), run) == []
