"""The compiled engine and the SimPy engine, written apart from one text of rules, give the same bits."""

from math import nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from serving_cases import (
    asked,
    busy_scenario,
    cluster,
    place,
    scenario,
    small_cached_scenarios,
    small_ranked_scenarios,
    small_scenarios,
    with_prefixes,
    with_ranks,
)
from serving_outcomes import differences

from workbench.serving.model import Lowered, Outcome
from workbench.serving.model.engine import run_compiled
from workbench.serving.simulated import run as simulated_run
from workbench.serving.simulated import simulate
from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.instants import Instants
from workbench.serving.simulated.router import Router
from workbench.serving.simulated.step import Step

SEEDS = range(400)


def ties(lowered: Lowered, run: Outcome) -> np.ndarray:
    """How often an arrival, a failure or recovery, or the end of a step met a step's end (elsewhere) to the bit."""
    ends = run.iteration_end_s
    outside = np.concatenate([lowered.failures.time_s, lowered.failures.back_s])
    arrivals = np.isin(lowered.requests.arrival_s, ends).sum()
    return np.array([arrivals, np.isin(outside, ends).sum(), ends.size - np.unique(ends).size])


@settings(max_examples=400)
@given(small_scenarios())
def test_small_clusters_end_the_same(lowered):
    assert differences(run_compiled(lowered), simulate(lowered)) == []


@settings(max_examples=400)
@given(small_ranked_scenarios())
def test_small_clusters_with_ranks_end_the_same(lowered):
    assert differences(run_compiled(lowered), simulate(lowered)) == []


@settings(max_examples=400)
@given(small_cached_scenarios())
def test_small_clusters_with_prefix_caches_end_the_same(lowered):
    assert differences(run_compiled(lowered), simulate(lowered)) == []


def test_large_clusters_end_the_same():
    """And they have evictions, failures and ties enough for that to mean something."""
    evictions = moves = failed_steps = inside = rejected = 0
    met = np.zeros(3, dtype=int)
    for seed in SEEDS:
        lowered = scenario(np.random.default_rng(seed))
        run = simulate(lowered)
        assert differences(run_compiled(lowered), run) == [], f"seed {seed}"
        evictions += run.evictions.sum()
        moves += run.moves.sum()
        failed_steps += run.failed_steps.sum()
        inside += (run.status == 0).sum()
        rejected += (run.status == 2).sum()
        met += ties(lowered, run)
    assert min(evictions, moves, failed_steps, inside, rejected) > 300
    assert met.min() > 300


def test_busy_clusters_end_the_same():
    """Long requests, batches of up to 256 and thousands of steps between two events."""
    evictions = moves = steps = 0
    for seed in range(12):
        lowered = busy_scenario(np.random.default_rng(seed))
        run = simulate(lowered)
        assert differences(run_compiled(lowered), run) == [], f"seed {seed}"
        evictions += run.evictions.sum()
        moves += run.moves.sum()
        steps += run.iteration_end_s.size
    assert min(evictions, moves, steps / 100) > 300


def test_large_clusters_with_ranks_end_the_same(monkeypatch):
    """And many requests give up slots and KV for others, also while they decode and others sit out."""
    admit, seen = Instance._admit, np.zeros(3, dtype=int)

    def counted(self):
        before, decoding = list(self.running), sum(not request.prefilling for request in self.running)
        admit(self)
        gone = any(request not in self.running for request in before)
        seen[:] += gone, gone and decoding > 1, gone and decoding > self.budget

    monkeypatch.setattr(Instance, "_admit", counted)
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        lowered = with_ranks(rng, scenario(rng) if seed % 20 else busy_scenario(rng), int(rng.choice([2, 3, 30])))
        if seed % 3 == 0:  # prompts come first, so that more decode than the budget allows
            few = {"budget": 1 + lowered.instances.budget % 2, "apart": np.ones_like(lowered.instances.apart)}
            lowered = lowered._replace(instances=lowered.instances._replace(**few))
        run = simulate(lowered)
        for jumps in (True, False):
            assert differences(run_compiled(lowered, jumps=jumps), run) == [], f"seed {seed}, jumps {jumps}"
    assert seen[:2].min() > 300, seen
    assert seen[2] > 30, seen


def test_large_clusters_with_prefix_caches_end_the_same():
    """And prompts are found, in part, anew after evictions and failures; half of the runs have ranks."""
    found = partly = again = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        lowered = with_prefixes(rng, scenario(rng))
        lowered = with_ranks(rng, lowered) if seed % 2 else lowered
        run = simulate(lowered)
        for jumps in (True, False):
            assert differences(run_compiled(lowered, jumps=jumps), run) == [], f"seed {seed}, jumps {jumps}"
        found += (run.cached > 0).sum()
        partly += ((run.cached > 0) & (run.cached < lowered.requests.prompt - 1)).sum()
        again += (run.cached > lowered.requests.prompt).sum()
    assert min(found, partly, 3 * again) > 300


@pytest.mark.parametrize("jumps", [True, False])
def test_a_token_right_after_the_prompt_in_its_way_was_evicted(jumps):
    """The fourth request sits out for the budget, then for prompts, and decodes when the last of these has to go."""
    shapes = [(0, 1, 2), (0.75, 1, 0), (1, 1, 2), (1.25, 2, 2), (1.75, 3, 2), (2, 2, 1)]
    engine = place(budget=2, chunk=4, block=1, blocks=8, apart=1, form=((0.25, 0, 0, 0, 0), (0,) * 5))
    lowered = cluster([asked(*shape) for shape in shapes], [engine], [(0.25, 0, 0.5)])
    run = run_compiled(lowered, jumps=jumps)
    assert [3, 1, 1, 0, 7] in run.segments.tolist()
    assert run.evictions.tolist() == [0, 0, 0, 0, 0, 1]
    assert differences(run, simulate(lowered)) == []


def evicted_go_last(monkeypatch):
    def evict(self):
        request = self.running.pop()
        self.blocks.take_back(request)
        request.forget()
        request.evictions += 1
        self.queue.append(request)

    monkeypatch.setattr(Instance, "_evict", evict)


def the_last_but_one_is_evicted(monkeypatch):
    evict = Instance._evict

    def swapped(self):
        self.running[-2:] = reversed(self.running[-2:])
        evict(self)

    monkeypatch.setattr(Instance, "_evict", swapped)


def a_block_too_many(monkeypatch):
    """For those that got one and then sat out."""
    grow = Instance._grow

    def greedy(self):
        for request in self.running:
            sat_out = request.stored % self.blocks.tokens_each == 0 and request.stored < request.room
            if sat_out and not request.prefilling and self.blocks.free:
                self.blocks.give(request, 1)
        return grow(self)

    monkeypatch.setattr(Instance, "_grow", greedy)


def one_above_the_limit(monkeypatch):
    takes = Instance.takes
    monkeypatch.setattr(
        Instance,
        "takes",
        lambda self, r: takes(self, r) or (self.up and self.fits(r) and self.outstanding == self.limit),
    )


def one_below_the_limit(monkeypatch):
    takes = Instance.takes
    monkeypatch.setattr(
        Instance, "takes", lambda self, r: takes(self, r) and self.outstanding != max(1, self.limit - 1)
    )


def ordered(monkeypatch, order):
    """Another order of what happens at one instant."""

    class Other(Instants):
        def __init__(self, instances):
            super().__init__(instances)
            for k, name in enumerate(order):
                setattr(self, name, 2 + k * (instances + 1))

    monkeypatch.setattr(simulated_run, "Instants", Other)


def ends_before_arrivals(monkeypatch):
    ordered(monkeypatch, ["recovers", "fails", "ends", "arrives", "hands_out", "starts"])


def failures_before_recoveries(monkeypatch):
    ordered(monkeypatch, ["fails", "recovers", "arrives", "ends", "hands_out", "starts"])


def failures_after_ends(monkeypatch):
    ordered(monkeypatch, ["recovers", "arrives", "ends", "hands_out", "fails", "starts"])


def starts_before_hand_outs(monkeypatch):
    ordered(monkeypatch, ["recovers", "fails", "arrives", "ends", "starts", "hands_out"])


def handed_out_after_each_end(monkeypatch):
    monkeypatch.setattr(Router, "call", lambda self: self._answer(None))


def moved_go_last(monkeypatch):
    def meet_again(self, requests, model):
        for request in requests:
            request.moves += 1
        self.lines[model].extend(requests)
        self.hand_out(model)

    monkeypatch.setattr(Router, "meet_again", meet_again)


def the_clock_stops_short(monkeypatch):
    run = simulated_run.Cluster.run
    monkeypatch.setattr(simulated_run.Cluster, "run", lambda self, until_s: run(self, nextafter(until_s, 0.0)))


def those_who_sit_out_are_read(monkeypatch):
    first = Step.__init__

    def __init__(self, running, budget, chunk, apart, form):
        first(self, running, budget, chunk, apart, form)
        outside = [request for request in running if not request.prefilling and request not in self.decodes]
        self.seconds += form[0][3] * sum(request.stored for request in outside)

    monkeypatch.setattr(Step, "__init__", __init__)


def members_are_all_that_run(monkeypatch):
    first = Step.__init__

    def __init__(self, running, budget, chunk, apart, form):
        first(self, running, budget, chunk, apart, form)
        self.seconds += form[0][4] * (len(running) - len(self.decodes) - len(self.chunks))

    monkeypatch.setattr(Step, "__init__", __init__)


FAULTS = [
    evicted_go_last,
    the_last_but_one_is_evicted,
    a_block_too_many,
    one_above_the_limit,
    one_below_the_limit,
    ends_before_arrivals,
    failures_before_recoveries,
    failures_after_ends,
    starts_before_hand_outs,
    handed_out_after_each_end,
    moved_go_last,
    the_clock_stops_short,
    those_who_sit_out_are_read,
    members_are_all_that_run,
]


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant, monkeypatch):
    plant(monkeypatch)
    lowered = (scenario(np.random.default_rng(seed)) for seed in SEEDS)
    assert any(differences(run_compiled(given), simulate(given)) for given in lowered)
