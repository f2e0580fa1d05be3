"""The artifact's lanes: its rules one by one on random clusters, and times by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.scaling.model.chain_times import lane_times
from workbench.scaling.policy.chain_plan import Holder, Spare
from workbench.scaling.policy.lane_plan import plan_lanes

CARD = 12.5e9
ROLES = ("prefill", "decode", "colocated", "host")


@st.composite
def clusters(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    roles = ["decode", *(ROLES[rng.integers(4)] for _ in range(draw(st.integers(0, 5))))]
    holders = [Holder(name=f"h{i}", role=role, bytes_per_s=CARD) for i, role in enumerate(roles)]
    free = [int(rng.integers(1, 9)) for _ in range(draw(st.integers(1, 8)))]
    spares = [
        Spare(name=f"{domain}.{place}", domain=domain, leaf=domain % 2, bytes_per_s=CARD)
        for domain, count in enumerate(free)
        for place in range(count)
    ]
    return holders, spares, free, draw(st.integers(1, len(spares)))


@given(clusters())
def test_rounds_follow_the_rules_of_the_artifact(cluster):
    holders, spares, free, wanted = cluster
    sources = [holder.name for holder in holders if holder.role == "decode"]
    rounds = plan_lanes(holders, spares, wanted)
    reached = [node.members[0] for lanes in rounds for lane in lanes for node in lane.nodes]
    assert len(reached) == len(set(reached))
    left = wanted
    for lanes in rounds:
        assert left > 0
        assert len(lanes) == min(len(sources), left, max(free))
        assert [lane.source.name for lane in lanes] == sources[: len(lanes)]
        domains = [[node.members[0].split(".")[0] for node in lane.nodes] for lane in lanes]
        assert all(row == domains[0] for row in domains), "a column is one host"
        counts = [free[int(domain)] for domain in domains[0]]
        assert counts == sorted(counts)
        assert min(counts) >= len(lanes)
        for domain in domains[0]:
            free[int(domain)] -= len(lanes)
        left -= len(lanes) * len(counts)
    assert 0 <= len(reached) - wanted < len(rounds[-1])


def test_a_round_may_reach_too_many_and_hosts_with_too_few_give_nothing():
    holders = [Holder(name=f"d{i}", bytes_per_s=CARD) for i in range(2)]
    holders += [Holder(name="p", role="prefill", bytes_per_s=CARD), Holder(name="m", role="host", bytes_per_s=CARD)]
    spares = [
        Spare(name=f"{domain}.{place}", domain=domain, leaf=domain // 2, bytes_per_s=CARD)
        for domain, count in enumerate((4, 1, 2))
        for place in range(count)
    ]
    (lanes,) = plan_lanes(holders, spares, 3)
    assert [[node.members for node in lane.nodes] for lane in lanes] == [[("2.0",), ("0.0",)], [("2.1",), ("0.1",)]]
    # Half of 16 GB over 100 Gbps takes 0.64 s, and twice as long over an uplink of half the rate.
    assert lane_times([lanes], 16e9) == [[0.64, 0.64]]
    assert lane_times([lanes], 16e9, 0.5) == [[1.28, 1.28]]
    # All seven: 2 + 2 first, of what is left a second round takes 2 more, and the last host's one comes alone.
    rounds = plan_lanes(holders, spares, 7)
    assert [len(lanes) for lanes in rounds] == [2, 2, 1]
    assert lane_times(rounds, 16e9) == [[0.64, 0.64], [1.28], [pytest.approx(2.56)]]
    # The setting of its ablation: prefill instances come first.
    assert [lane.source.name for lane in plan_lanes(holders, spares, 3, direction_aware=False)[0]] == ["p", "d0", "d1"]


def test_limits():
    spare = Spare(name="g", domain=0, bytes_per_s=1.0)
    holder = Holder(name="d", bytes_per_s=1.0)
    assert plan_lanes([holder], [spare], 0) == lane_times([], 1.0) == []
    with pytest.raises(InputError, match="2 where 1 spare"):
        plan_lanes([holder], [spare], 2)
    with pytest.raises(InputError, match="no decode instance"):
        plan_lanes([holder.model_copy(update={"role": "host"})], [spare], 1)
