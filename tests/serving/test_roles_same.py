"""Instances that only prefill or decode: compiled and SimPy engine, written apart from one text, give the same bits."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from serving_cases import (
    asked,
    busy_scenario,
    migrating,
    place,
    scenario,
    small_role_scenarios,
    with_batches,
    with_prefixes,
    with_ranks,
    with_roles,
)
from serving_outcomes import differences

from workbench.errors import UserError
from workbench.serving.model import Lowered, Outcome
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import DECODE, PREFILL, REJECTED, Failures
from workbench.serving.policy import chooser
from workbench.serving.simulated import simulate
from workbench.serving.simulated.decoder import Decoder
from workbench.serving.simulated.instance import Instance

SEEDS = range(600)


def any_cluster(seed: int) -> Lowered:
    """Half of them on a grid of times; with ranks, prefixes, both, or neither."""
    rng = np.random.default_rng(seed)
    lowered = with_batches(seed, with_roles(rng, busy_scenario(rng) if seed % 50 == 0 else scenario(rng)))
    lowered = with_ranks(rng, lowered) if seed % 2 else lowered
    lowered = with_prefixes(rng, lowered) if seed % 4 > 1 else lowered
    return failing_as_it_lands(rng, lowered) if seed % 3 == 0 else lowered


def failing_as_it_lands(rng: np.random.Generator, base: Lowered) -> Lowered:
    """The same without its failures, but one of the source or the target of a transfer at the instant when it ends."""
    calm = base._replace(failures=Failures(np.empty(0), np.empty(0, np.int64), np.empty(0)))
    flows = run_compiled(calm).flows
    flows = flows[~np.isnan(flows[:, 1])]
    if not len(flows):
        return base
    _, end_s, _, *ends, _ = flows[rng.integers(len(flows))]
    back_s = end_s + rng.choice([0.5, 4.0, np.inf])
    failures = Failures(np.array([end_s]), np.array([ends[rng.integers(2)]], np.int64), np.array([back_s]))
    return base._replace(failures=failures)


def occurrences(lowered: Lowered, run: Outcome) -> Counter:
    """How often what may go apart came up in a run."""
    seen = Counter(evictions=run.evictions.sum(), moves=run.moves.sum())
    start_s, end_s = run.flows[:, 0], run.flows[:, 1]
    ended, failures, ends = end_s[~np.isnan(end_s)], lowered.failures.time_s, run.iteration_end_s
    seen["flows"] = len(run.flows)
    seen["cancelled"] = len(run.flows) - ended.size if np.isinf(lowered.until_s) else 0
    seen["again"] = len(run.flows) - np.unique(run.flows[:, 2]).size
    seen["at once"] = (end_s == start_s).sum()
    seen["several at an instant"] = ended.size - np.unique(ended).size
    seen["landings at ends of steps"] = np.isin(ended, ends).sum()
    seen["landings at arrivals"] = np.isin(ended, lowered.requests.arrival_s).sum()
    seen["failures at starts of flows"] = np.isin(start_s, failures).sum()
    seen["handed over later"] = (~np.isin(start_s, ends)).sum()
    seen["prefilled anew where it decodes"] = (lowered.instances.role[run.prefill[run.prefill >= 0]] == DECODE).sum()
    seen["rejected"] = (run.status == REJECTED).sum()
    return seen


@settings(max_examples=400, deadline=None)
@given(small_role_scenarios())
def test_small_clusters_with_roles_end_the_same(lowered):
    assert differences(run_compiled(lowered), simulate(lowered)) == []


def test_large_clusters_with_roles_end_the_same(monkeypatch):
    """And all that may happen does, often enough for that to mean something."""
    seen = Counter()
    start, land = Instance._start, Decoder.land

    def counted_start(self):
        step = start(self)
        seen["nobody runs"] += not self.running
        return step

    def counted_land(self, *given):
        seen["landed during a step"] += self.step is not None
        land(self, *given)

    monkeypatch.setattr(Instance, "_start", counted_start)
    monkeypatch.setattr(Decoder, "land", counted_land)
    for seed in SEEDS:
        lowered = any_cluster(seed)
        run = simulate(lowered)
        for jumps in (True, False):
            assert differences(run_compiled(lowered, jumps=jumps), run) == [], f"seed {seed}, jumps {jumps}"
        seen += occurrences(lowered, run)
        if seed % 3 == 0 and len(run.flows) and len(lowered.failures.instance):
            lost = np.isnan(run.flows[:, 1]) & (run.flows[:, 3:5] == lowered.failures.instance[:1]).any(axis=1)
            seen["lost as it landed"] += lost.any()
    rare = {name: count for name, count in seen.items() if count < 50}
    assert not rare, seen


def test_a_policy_of_ones_own_chooses_who_decodes_too():
    last = chooser(lambda places, outstanding, tokens, draw, turn: places.size - 1)
    pairs = [place(role=role) for role in (PREFILL, DECODE) for _ in range(2)]
    run = run_compiled(migrating([asked(0, 4, 2)] * 2, pairs), last)
    assert [run.prefill.tolist(), run.instance.tolist()] == [[1, 1], [3, 3]]
    with pytest.raises(UserError, match="no position"):
        run_compiled(
            migrating([asked(0, 4, 2)], pairs), chooser(lambda places, outstanding, tokens, draw, turn: places.size)
        )


def test_the_log_of_flows_grows_as_long_as_the_run():
    """A request a second for an hour, each with its own transfer of half a second."""
    run = run_compiled(migrating([asked(k, 2, 2) for k in range(3600)], [place(role=PREFILL), place(role=DECODE)]))
    assert len(run.flows) == 3600
    assert (run.flows[:, 1] - run.flows[:, 0] == 0.5).all()
    assert (run.finish_s == np.arange(3600) + 2.5).all()
