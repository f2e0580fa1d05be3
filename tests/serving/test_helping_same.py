"""Rows that help while they load: compiled and SimPy engine, written apart from one text, give the same bits."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scaled_role_cases import small_sending_scenarios
from sent_weights_cases import with_live
from serving_outcomes import differences

from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import COLOCATED
from workbench.serving.policy.scalers import CHAINS
from workbench.serving.simulated import simulate


@settings(max_examples=100, deadline=None)
@given(
    small_sending_scenarios(), st.integers(1, 3), st.sampled_from([1, 3, 32]), st.sampled_from([0.0, 1 / 64]),
    st.sampled_from([0.5, 2.0, 4.0]), st.integers(0, 1),
)  # fmt: skip
def test_small_clusters_with_tails_that_help_end_the_same(base, live, layers, activation_s, promise_s, waits):
    groups = len(base.scaling.kind)
    scaling = base.scaling._replace(
        live=np.where(base.scaling.source == CHAINS, live, 0),
        layers=np.full(groups, layers),
        activation_s=np.full(groups, activation_s),
        promise_s=np.full(groups, promise_s),
        waits=np.full(groups, waits),
    )
    lowered = checked(base._replace(scaling=scaling))
    assert differences(run_compiled(lowered), simulate(lowered)) == []


def test_large_clusters_with_tails_that_help_end_the_same():
    """And help is given, often enough for that to mean something, also where it has to pay, and lost."""
    seen = Counter()
    for seed in range(400):
        lowered = checked(with_live(np.random.default_rng([seed, 5])))
        run = simulate(lowered)
        assert differences(run_compiled(lowered, jumps=seed % 5 > 0), run) == [], f"seed {seed}"
        row = run.assists[:, 3].astype(int)
        group = lowered.instances.model[row] + len(lowered.scaling.bytes) * (lowered.instances.role[row] == 2)
        seen["helped"] += row.size
        seen["helped where it pays"] += (lowered.scaling.live[group] == 2).sum()
        for waits in (0, 1):
            broken = (lowered.scaling.live[group] == 3) & (lowered.scaling.waits[group] == waits)
            seen["helped for a promise", waits] += broken.sum()
        seen["helped without roles"] += (lowered.instances.role[row] == COLOCATED).sum()
        seen["lost"] += np.isnan(run.assists[:, 1]).sum()
        seen["several at a time"] += (run.assists[1:, 0] < run.assists[:-1, 1]).sum()
    rare = {name: seen[name] for name in seen if seen[name] < 5}
    assert not rare, seen
