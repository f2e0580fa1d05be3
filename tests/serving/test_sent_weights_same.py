"""Weights over the links of KV: compiled and SimPy engine, written apart from one text, give the same bits."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from scaled_role_cases import scaled_role_scenario, small_sending_scenarios
from scaling_cases import failing_multicasts, piped_scenarios
from sent_weights_cases import chain_scenario, with_chains
from serving_outcomes import differences

from workbench.errors import UserError
from workbench.serving.model import Lowered, Outcome
from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import COLOCATED
from workbench.serving.policy.scalers import CHAINS, TIERS_BY_NUMBER
from workbench.serving.simulated import simulate
from workbench.serving.simulated.chains import Chains


def sending_scenario(seed: int) -> Lowered:
    """With roles and without, half of them on a grid of times; every fourth with long chains whose members fail."""
    rng = np.random.default_rng([seed, 5])
    if seed % 4 == 0:
        lowered = with_chains(rng, failing_multicasts(rng))
        scaling = lowered.scaling
        return lowered._replace(
            scaling=scaling._replace(
                source=np.full_like(scaling.source, CHAINS), chains=np.array([1]), near_s=np.array([np.inf])
            )
        )
    return chain_scenario(rng, 60) if seed % 3 else with_chains(rng, scaled_role_scenario(2 * seed + 1))


def occurrences(lowered: Lowered, run: Outcome) -> Counter:
    """How often what may go apart came up in a run."""
    n, ended = len(lowered.instances.model), ~np.isnan(run.chains[:, 1])
    seen = Counter(chains=len(run.chains), landed=ended.sum())
    seen.update(TIERS_BY_NUMBER[k] for k in run.loads[:, 3].astype(int))
    seen["given up"] = (~ended & ~np.isnan(run.chains[:, 2])).sum()
    seen["from hosts"] = (run.chains[:, 4] >= n).sum()
    seen["of several rows"] = (np.bincount(run.hops[:, 0].astype(int), minlength=len(run.chains)) > 1).sum()
    seen["of several flows"] = len(run.chains) - np.unique(run.chains[:, 3]).size
    seen["without roles"] = len(run.chains) if (lowered.instances.role == COLOCATED).all() else 0
    for chain in run.chains[ended]:
        beside = (run.flows[:, 0] < chain[1]) & (run.flows[:, 1] > chain[0])
        seen["beside KV"] += beside.any()
    seen["landed at ticks"] = np.isin(run.chains[:, 1], run.ticks[:, 0]).sum()
    seen["landed at once"] = (run.chains[:, 1] == run.chains[:, 0]).sum()
    return seen


@settings(max_examples=200, deadline=None)
@given(small_sending_scenarios())
def test_small_clusters_that_send_weights_end_the_same(lowered):
    lowered = checked(lowered)
    assert differences(run_compiled(lowered), simulate(lowered)) == []


def test_large_clusters_that_send_weights_end_the_same(monkeypatch):
    """And all that may happen does, often enough for that to mean something; every fifth run is made step by step."""
    seen, lose_link = Counter(), Chains._lose_link

    def counted(self, chain, place):
        before = chain.flows, len(chain.loads)
        lose_link(self, chain, place)
        seen["links lost, some go on"] += place >= 0 and bool(chain.loads) and len(chain.loads) < before[1]
        seen["links lost, none goes on"] += not chain.loads

    monkeypatch.setattr(Chains, "_lose_link", counted)
    for seed in range(400):
        lowered = checked(sending_scenario(seed))
        run = simulate(lowered)
        assert differences(run_compiled(lowered, jumps=seed % 5 > 0), run) == [], f"seed {seed}"
        seen += occurrences(lowered, run)
    rare = {name: count for name, count in seen.items() if count < 8}
    assert not rare, seen
    assert {"chains", "near", "resident", "dram", "ssd", "from hosts", "links lost, some go on"} <= set(seen)


def test_pipelines_do_not_go_with_weights_over_links():
    lowered = next(one for one in piped_scenarios() if np.isfinite(one.scaling.piped_s).any())
    with pytest.raises(UserError, match="forms no pipelines where other weights come by chains; run it on SimPy"):
        run_compiled(with_chains(np.random.default_rng(0), lowered))
