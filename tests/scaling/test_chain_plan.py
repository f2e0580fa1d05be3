"""BlitzScale's greedy chains: the rules of the prose one by one, and the exhaustive optimum on small clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.scaling.model.chain_times import best_chains, chain_times, plan_time
from workbench.scaling.policy.chain_plan import Chain, Holder, Node, Spare, free_sources, grouped, plan_chains
from workbench.scaling.policy.lane_plan import plan_lanes

GBPS = 1e9 / 8
ROLES = ("prefill", "decode", "colocated", "host")


@st.composite
def clusters(draw, most=24):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    holders = [
        Holder(
            name=f"h{i}",
            role=ROLES[rng.integers(4)],
            leaf=int(rng.integers(3)),
            bytes_per_s=float(rng.choice([100, 200, 400])) * GBPS,
        )
        for i in range(draw(st.integers(1, 4)))
    ]
    spares = [
        Spare(
            name=f"g{i}",
            domain=int(rng.integers(most)),
            leaf=int(rng.integers(3)),
            bytes_per_s=float(rng.choice([100, 200])) * GBPS,
        )
        for i in range(draw(st.integers(1, most)))
    ]
    return holders, spares, draw(st.integers(1, len(spares)))


@given(clusters())
def test_every_accelerator_is_reached_once_and_no_more_than_wanted(cluster):
    holders, spares, wanted = cluster
    chains = plan_chains(holders, spares, wanted)
    reached = [member for chain in chains for node in chain.nodes for member in node.members]
    assert len(reached) == len(set(reached)) == wanted
    assert set(reached) <= {spare.name for spare in spares}
    assert all(chain.nodes for chain in chains)
    assert len({chain.source.name for chain in chains}) == len(chains)


@given(clusters())
def test_no_prefill_instance_sends_weights_where_another_can(cluster):
    holders, spares, wanted = cluster
    sources = [chain.source.role for chain in plan_chains(holders, spares, wanted)]
    if any(holder.role in ("decode", "host") for holder in holders):
        assert set(sources) <= {"decode", "host"}
    assert len(plan_chains(holders, spares, wanted, direction_aware=False)) >= len(sources)


@given(clusters(most=5), st.floats(0.2, 1.0))
def test_the_greedy_plan_is_never_better_than_the_best_one(cluster, between_leaves):
    holders, spares, wanted = cluster
    greedy = plan_time(plan_chains(holders, spares, wanted), 16e9, between_leaves)
    best = plan_time(best_chains(holders, spares, wanted, 16e9, between_leaves), 16e9, between_leaves)
    assert best <= (greedy[0] * (1 + 1e-12), greedy[1] * (1 + 1e-12)) or best[0] < greedy[0]


def test_faster_domains_come_first_and_count_all_their_cards():
    spares = [Spare(name="slow", domain=0, bytes_per_s=100 * GBPS)]
    spares += [Spare(name=f"fast{i}", domain=1, bytes_per_s=80 * GBPS) for i in range(2)]
    assert [node.members for node in grouped(spares, 3)] == [("fast0", "fast1"), ("slow",)]
    (chain,) = plan_chains([Holder(name="d", bytes_per_s=400 * GBPS)], spares, 3)
    # 16 GB over 160 Gbps, then over 100: the faster one loses nothing by being first.
    assert chain_times(chain, 16e9) == pytest.approx([16e9 / (160 * GBPS), 16e9 / (100 * GBPS)])
    assert chain.live == ("slow",)


def test_each_leaf_with_a_source_is_served_below_its_switch():
    holders = [Holder(name=f"d{leaf}", leaf=leaf, bytes_per_s=100 * GBPS) for leaf in (1, 0)]
    spares = [Spare(name=f"g{i}", domain=i, leaf=i % 2, bytes_per_s=100 * GBPS) for i in range(6)]
    for chain in plan_chains(holders, spares, 6):
        assert {node.leaf for node in chain.nodes} == {chain.source.leaf}
        assert len(chain.nodes) == 3
    # And a source under a leaf without targets comes last.
    (only,) = plan_chains([Holder(name="far", leaf=9, bytes_per_s=1e12), holders[0]], spares, 6, chains=1)
    assert only.source.name == "d1"


def test_as_many_tails_as_chains():
    holders = [Holder(name=f"d{i}", bytes_per_s=100 * GBPS) for i in range(2)]
    spares = [Spare(name=f"g{i}", domain=i, bytes_per_s=100 * GBPS) for i in range(6)]
    chains = plan_chains(holders, spares, 6)  # Figure 21: two chains of three
    assert [len(chain.nodes) for chain in chains] == [3, 3]
    assert [chain.live for chain in chains] == [("g4",), ("g5",)]
    # Llama3-8B takes 1.285 s over 100 Gbps, however many stand behind each other (notes on BlitzScale, §2.1).
    assert plan_time(chains, 16.06e9)[0] == pytest.approx(1.285, abs=0.001)


def test_limits():
    holder, spare = Holder(name="d", bytes_per_s=1.0), Spare(name="g", domain=0, bytes_per_s=1.0)
    assert plan_chains([holder], [spare], 0) == []
    assert plan_time([], 1.0) == (0.0, 0.0)
    prefill = Holder(name="d", role="prefill", bytes_per_s=1.0)
    for planner in (plan_chains, lambda *given: best_chains(*given, 1.0), plan_lanes):
        with pytest.raises(InputError, match="holds the weights"):
            planner([], [spare], 1)
        with pytest.raises(InputError, match="2 where 1 spare"):
            planner([holder], [spare], 2)
        with pytest.raises(InputError, match="-1; give a whole number of 0 or more"):
            planner([holder], [spare], -1)
        with pytest.raises(InputError, match="'spares': has 'g' 2 times; give each a name"):
            planner([holder], [spare, spare], 1)
        with pytest.raises(InputError, match="'holders': has 'd' 2 times"):
            planner([holder, prefill], [spare], 1)
    with pytest.raises(InputError, match="allow 1"):
        plan_chains([holder], [spare], 1, chains=2)
    with pytest.raises(InputError, match="at most 1"):
        chain_times(Chain(source=holder, nodes=(Node(members=("g",), leaf=0, bytes_per_s=1.0),)), 1.0, 2.0)
    with pytest.raises(InputError, match="at most 7"):
        best_chains([holder], [spare.model_copy(update={"domain": i, "name": f"g{i}"}) for i in range(8)], 8, 1.0)
    assert free_sources([Holder(name="p", role="prefill", bytes_per_s=1.0)])[0].name == "p"
