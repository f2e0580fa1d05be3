"""Nodes that die in the middle of a simulated multicast."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import UserError, WorkbenchError
from workbench.transfer.model import uniform_network
from workbench.transfer.policy import binomial_pipeline, chain, k_way, make_schedule
from workbench.transfer.simulated import Background, Death, simulate

NETWORK = uniform_network(8, 1e9)


def test_without_a_new_plan_the_survivors_keep_what_they_got():
    found = simulate(chain(8, 16), NETWORK, 1e9, deaths=[Death(node=3, time_s=4.5)])
    assert found.dead == (3,)
    assert found.held[:3].all()  # before the dead node the chain goes on
    assert found.held[3:].sum(axis=1).tolist() == [2, 1, 1, 1, 1]  # block 0 was past node 3 and goes on down the chain
    assert np.isnan(found.finish_s)
    assert [plan.name for plan in found.plans] == ["chain"]
    lost = found.transfers.filter(pl.col("kind") == "weights lost")
    assert lost.select("source", "target", "bytes").rows() == [(2, 3, 0.5e9), (3, 4, 0.5e9)]


def test_with_a_new_plan_they_complete_each_other():
    found = simulate(chain(8, 16), NETWORK, 1e9, deaths=[Death(node=3, time_s=4.5)], detect_s=0.1)
    survivors = [0, 1, 2, 4, 5, 6, 7]
    assert found.held[survivors].all()
    assert [plan.name for plan in found.plans] == ["chain", "chain replanned"]
    assert found.finish_s == pytest.approx(5.0 + found.plans[1].steps)  # flows in progress at 4.6 s end at 5 s
    after = found.transfers.filter(pl.col("start_s") > 4.5)
    assert 3 not in set(after["source"]) | set(after["target"])


@settings(max_examples=25)
@given(
    st.sampled_from(["chain", "binomial_pipeline", "binary_tree", "faasnet_tree"]),
    st.lists(st.tuples(st.integers(1, 8), st.floats(0, 25)), min_size=1, max_size=4, unique_by=lambda death: death[0]),
    st.floats(0, 3),
)
def test_survivors_always_complete_while_the_source_lives(name, deaths, detect_s):
    schedule = make_schedule(name, 9, 6)
    found = simulate(
        schedule,
        uniform_network(9, 1e9),
        1e9,
        deaths=[Death(node=node, time_s=time_s) for node, time_s in deaths],
        detect_s=detect_s,
    )
    survivors = [node for node in range(9) if node not in found.dead]
    assert set(found.dead) == {node for node, _ in deaths}
    assert found.held[survivors].all()
    assert np.isfinite(found.finish_s)


def test_a_dead_source_is_replaced_by_another_copy():
    schedule = k_way(8, 6, sources=2)
    found = simulate(schedule, NETWORK, 1e9, deaths=[Death(node=0, time_s=1.5)], detect_s=0.0)
    assert found.held[1:].all()


def test_a_dead_only_source_takes_unsent_blocks_with_it():
    with pytest.raises(WorkbenchError, match=r"holds block 2 \(4 blocks lost with node 0\)"):
        simulate(binomial_pipeline(8, 6), NETWORK, 1e9, deaths=[Death(node=0, time_s=2.5)], detect_s=0.0)


def test_a_source_that_has_sent_everything_is_not_missed():
    schedule = chain(4, 3)
    found = simulate(schedule, NETWORK, 1e9, deaths=[Death(node=0, time_s=3.5)], detect_s=0.1)
    assert found.held[1:4].all()


def test_a_transfer_that_ends_at_the_instant_of_death_is_lost():
    found = simulate(chain(3, 1), NETWORK, 1e9, deaths=[Death(node=1, time_s=1.0)])
    assert not found.held[1].any()


def test_the_death_of_everybody_leaves_nobody_to_wait_for():
    found = simulate(chain(2, 1), NETWORK, 1e9, deaths=[Death(node=0, time_s=0.5), Death(node=1, time_s=0.5)])
    assert np.isnan(found.finish_s)


def test_traffic_to_a_dead_node_is_cut_and_none_starts_later():
    traffic = [
        Background(source=0, target=5, bytes=10e9),
        Background(source=5, target=1, bytes=1e9, start_s=3.0),
    ]
    found = simulate(chain(3, 4), NETWORK, 1e9, background=traffic, deaths=[Death(node=2, time_s=1.0)])
    assert found.transfers.filter(pl.col("kind") == "kv").height == 2
    found = simulate(chain(6, 4), NETWORK, 1e9, background=traffic, deaths=[Death(node=5, time_s=1.0)])
    kv = found.transfers.filter(pl.col("kind").str.starts_with("kv"))
    assert kv["kind"].to_list() == ["kv lost"]


def test_nobody_dies_in_lock_step():
    with pytest.raises(UserError, match="dataflow run"):
        simulate(chain(3, 2), NETWORK, 1e9, run="barrier", deaths=[Death(node=1, time_s=1.0)])
    with pytest.raises(UserError, match="Node 7"):
        simulate(chain(3, 2), NETWORK, 1e9, deaths=[Death(node=7, time_s=1.0)])
