"""Groups that scale by role: compiled and SimPy engine, written apart from one text, give the same bits."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from scaled_role_cases import scaled_role_scenario, small_scaled_role_scenarios
from serving_outcomes import differences

from workbench.serving.model import Lowered, Outcome
from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import DECODE, PREFILL
from workbench.serving.model.scaled import DEAD, DRAINING, EMPTY, STARTING, UP, WARM
from workbench.serving.policy import SCALERS
from workbench.serving.policy.scalers import TIERS_BY_NUMBER
from workbench.serving.simulated import simulate
from workbench.serving.simulated.weights import Weights


def occurrences(lowered: Lowered, run: Outcome) -> Counter:
    """How often what may go apart came up in a run."""
    seen = Counter(moves=run.moves.sum(), evictions=run.evictions.sum(), flows=len(run.flows))
    now, role = lowered.scaling.start_state.tolist(), lowered.instances.role
    for _, row, state in run.states.tolist():
        seen[int(role[int(row)]), now[int(row)], int(state)] += 1
        now[int(row)] = int(state)
    of_roles = run.ticks[lowered.scaling.kind[run.ticks[:, 1].astype(int)] == SCALERS["roles"]]
    prefills = of_roles[:, 1] < len(lowered.scaling.bytes)
    for name, mine in (("prefill", prefills), ("decode", ~prefills)):
        seen[f"more that {name}"] += (of_roles[mine, 2] > of_roles[mine, 3]).sum()
        seen[f"fewer that {name}"] += (of_roles[mine, 2] < of_roles[mine, 3]).sum()
    seen.update(TIERS_BY_NUMBER[k] for k in run.loads[:, 3].astype(int))
    seen["cancelled"] += np.isnan(run.flows[:, 1]).sum() if np.isinf(lowered.until_s) else 0
    warm_s = run.states[run.states[:, 2] == WARM, 0]
    seen["warm when KV is sent"] += np.isin(warm_s, run.flows[:, 1]).sum()
    for what, changed in (("loads", run.loads[:, 1]), ("landings", run.flows[:, 1])):
        seen[f"{what} at ticks"] += np.isin(changed, run.ticks[:, 0]).sum()
    return seen


WANTED = [
    *((role, *change) for role in (PREFILL, DECODE) for change in (
        (EMPTY, STARTING), (STARTING, UP), (STARTING, DEAD), (UP, DRAINING), (UP, WARM), (UP, DEAD), (DRAINING, UP),
        (DRAINING, WARM), (WARM, UP), (WARM, EMPTY), (DEAD, EMPTY),
    )),
    "more that prefill", "fewer that prefill", "more that decode", "fewer that decode", "resident", "multicast", "dram",
    "ssd", "moves", "evictions", "cancelled", "warm when KV is sent", "loads at ticks", "landings at ticks",
    "begun again",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(small_scaled_role_scenarios())
def test_small_groups_with_roles_end_the_same(lowered):
    lowered = checked(lowered)
    assert differences(run_compiled(lowered), simulate(lowered)) == []


def test_large_groups_with_roles_end_the_same(monkeypatch):
    """And all that may happen does, often enough for that to mean something; every fifth run is made step by step."""
    seen, again = Counter(), Weights.begin_again

    def counted_again(self, *given):
        seen["begun again"] += 1
        again(self, *given)

    monkeypatch.setattr(Weights, "begin_again", counted_again)
    for seed in range(400):
        lowered = checked(scaled_role_scenario(seed))
        run = simulate(lowered)
        assert differences(run_compiled(lowered, jumps=seed % 5 > 0), run) == [], f"seed {seed}"
        seen += occurrences(lowered, run)
    rare = {name: seen[name] for name in WANTED if seen[name] < 20}
    assert not rare, seen
