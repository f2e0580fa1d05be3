"""SimPy multicasts against the closed forms, and flows that share links."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InputError, UnknownName, UserError, WorkbenchError
from workbench.transfer.model import (
    Hockney,
    chain_of_blocks_s,
    completion,
    lanes_completion_s,
    run_times,
    uniform_network,
)
from workbench.transfer.policy import SCHEDULES, chain, make_schedule, schedule_blocks
from workbench.transfer.simulated import Background, Ledger, simulate

COST = Hockney(alpha_s=6.28e-3, bytes_per_s=42e9)
OPTIONS = {
    "ring_broadcast": {"slices": 3},
    "k_way": {"sources": 3, "order": "strided"},
    "multi_chain": {"chains": 3},
    "sharded": {"lanes": 2},
}


@pytest.mark.parametrize("run", ["dataflow", "barrier"])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_simulation_equals_the_closed_form(name, run):
    options = OPTIONS.get(name, {})
    for nodes, blocks in ((4, 2), (6, 12), (8, 4), (14, 6), (16, 16)):
        if name == "multi_chain" and nodes < 5:
            continue
        total = 1e9
        size = total / schedule_blocks(name, nodes, blocks, **options)
        network = uniform_network(nodes, COST.bytes_per_s, COST.alpha_s)
        found = simulate(make_schedule(name, nodes, blocks, **options), network, size, run=run)
        expected = completion(name, nodes, blocks, total, COST, run, **options)
        assert found.completion["complete_s"].to_list() == pytest.approx(expected["complete_s"].to_list(), rel=1e-9)
        assert found.held.all()


@settings(max_examples=30)
@given(
    st.sampled_from(["chain", "binomial_pipeline", "binary_tree", "sequential"]),
    st.integers(3, 10),
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
)
def test_on_unequal_links_it_equals_the_dataflow_kernel(name, nodes, blocks, seed):
    random = np.random.default_rng(seed)
    slow = {(int(a), int(b)): 1e9 * random.uniform(0.1, 1) for a, b in random.integers(0, nodes, (6, 2)) if a != b}
    faster = {int(node): 1e9 * random.uniform(0.5, 2) for node in random.integers(0, nodes, 3)}
    network = uniform_network(nodes, 1e9, 1e-3, node_bytes_per_s=faster, slow_links=slow)
    schedule = make_schedule(name, nodes, blocks)
    sizes = random.uniform(1e6, 5e6, blocks)
    for run in ("dataflow", "barrier"):
        times = run_times(schedule, network.transfer_seconds(schedule, sizes), run)
        found = simulate(schedule, network, sizes, run=run)
        assert found.completion["complete_s"].to_list() == pytest.approx(times.complete_s.tolist(), rel=1e-9)


def test_a_chain_over_unequal_hops_takes_the_exact_time():
    hops = [1.0, 2.0, 1.0]
    network = uniform_network(4, 1e12, slow_links={(i, i + 1): 1e9 / t for i, t in enumerate(hops)})
    found = simulate(chain(4, 4), network, 1e9)
    assert found.completion["complete_s"].to_list()[1:] == pytest.approx(chain_of_blocks_s(hops, 4).tolist(), rel=1e-9)


def test_lanes_overlap_with_the_local_ring():
    for local_rate in (200e9, 12.5e9, 5e9):
        network = uniform_network(12, 12.5e9, accelerators_per_host=4, local_bytes_per_s=local_rate)
        found = simulate(make_schedule("sharded", 12, 20, lanes=4), network, 1e8)
        expected = np.repeat(lanes_completion_s(3, 4, 20, 1e8 / 12.5e9, 1e8 / local_rate), 4)
        assert found.completion["complete_s"].to_list() == pytest.approx(expected.tolist(), rel=1e-9)


def test_lanes_through_one_shared_nic_gain_nothing():
    one = simulate(chain(2, 8), uniform_network(2, 12.5e9), 1e9).finish_s
    network = uniform_network(8, 12.5e9, accelerators_per_host=4, accelerators_per_nic=4, local_bytes_per_s=1e15)
    shared = simulate(make_schedule("sharded", 8, 8, lanes=4), network, 1e9).finish_s
    assert shared == pytest.approx(one, rel=1e-3)


def test_an_uplink_is_shared_by_all_chains_that_cross_it():
    """Two chains from leaf 0 into leaf 1: the uplink of 1 B holds both to half speed."""
    network = uniform_network(4, 1e9, hosts_per_leaf=2, uplink_bytes_per_s=1e9)
    schedule = make_schedule("multi_chain", 4, 5, chains=2, sources=2)
    found = simulate(schedule, network, 1e9)
    assert found.finish_s == pytest.approx(10.0)
    free = uniform_network(4, 1e9, hosts_per_leaf=2, uplink_bytes_per_s=2e9)
    assert simulate(schedule, free, 1e9).finish_s == pytest.approx(5.0)


def test_traffic_in_the_same_direction_slows_a_load_and_in_the_other_does_not():
    """BlitzScale Figures 7 and 8: KV that takes a third of the link makes the load 1.5 times longer."""
    network = uniform_network(3, 12.5e9)
    load = chain(2, 16)
    alone = simulate(load, network, 1e9).finish_s
    third = 12.5e9 / 3
    same = simulate(load, network, 1e9, background=[Background(source=0, target=2, bytes=1e11, bytes_per_s=third)])
    opposite = simulate(load, network, 1e9, background=[Background(source=2, target=0, bytes=1e11, bytes_per_s=third)])
    assert same.finish_s / alone == pytest.approx(1.5)
    assert opposite.finish_s / alone == pytest.approx(1.0)
    elastic = simulate(load, network, 1e9, background=[Background(source=0, target=2, bytes=1e11)])
    assert elastic.finish_s / alone == pytest.approx(2.0)
    kinds = same.links.filter(pl.col("link") == "nic 0 out")["kind"].unique().sort().to_list()
    assert kinds == ["kv", "weights"]


def test_traffic_that_starts_and_ends_in_the_middle():
    network = uniform_network(3, 1e9)
    found = simulate(chain(2, 1), network, 4e9, background=[Background(source=0, target=2, bytes=1e9, start_s=1.0)])
    assert found.finish_s == pytest.approx(5.0)  # 1 s alone, 2 s at half speed, 2 s alone
    kv = found.transfers.filter(pl.col("kind") == "kv")
    assert kv["end_s"].to_list() == pytest.approx([3.0])
    rates = found.links.filter((pl.col("link") == "nic 0 out") & (pl.col("kind") == "weights"))
    assert rates["bytes_per_s"].to_list() == pytest.approx([1e9, 0.5e9, 1e9])
    assert rates["start_s"].to_list() == pytest.approx([0.0, 1.0, 3.0])


def test_tables_have_the_agreed_columns_and_conserve_bytes():
    network = uniform_network(6, 1e9, 1e-3, hosts_per_leaf=3, uplink_bytes_per_s=1.5e9)
    schedule = make_schedule("binomial_pipeline", 6, 5)
    traffic = [Background(source=1, target=5, bytes=3e8, bytes_per_s=2e8, start_s=0.05)]
    found = simulate(schedule, network, 1e7, background=traffic, model="llama", version="v1")
    assert found.transfers.columns == [
        "start_s", "end_s", "source", "target", "block", "bytes", "kind", "model", "version", "path",
    ]  # fmt: skip
    assert found.links.columns == ["start_s", "end_s", "link", "kind", "bytes_per_s"]
    weights = found.transfers.filter(pl.col("kind") == "weights")
    assert weights.height == 5 * 5
    assert weights["bytes"].sum() == pytest.approx(25 * 1e7)
    assert set(weights["model"]) == {"llama"}
    for index, resource in enumerate(network.resources):
        rows = found.links.filter(pl.col("link") == resource.name)
        carried = (rows["bytes_per_s"] * (rows["end_s"] - rows["start_s"])).sum()
        over = [
            row["bytes"]
            for row in found.transfers.iter_rows(named=True)
            if index in network.path(row["source"], row["target"])
        ]
        assert carried == pytest.approx(sum(over), rel=1e-9)
        moments = sorted({*rows["start_s"], *rows["end_s"]})
        for moment in moments:
            now = rows.filter((pl.col("start_s") <= moment) & (moment < pl.col("end_s")))["bytes_per_s"].sum()
            assert now <= resource.bytes_per_s * (1 + 1e-9)


def test_each_node_sends_and_receives_one_block_at_a_time_per_port():
    network = uniform_network(9, 1e9, slow_links={(0, 1): 3e8, (2, 3): 5e8})
    found = simulate(make_schedule("binomial_pipeline", 9, 7), network, 1e7).transfers
    for end in ("source", "target"):
        for _, rows in found.group_by(end):
            ordered = rows.sort("start_s")
            assert (ordered["start_s"][1:] >= ordered["end_s"][:-1] - 1e-12).all()


def test_runs_are_repeatable_to_the_bit():
    network = uniform_network(7, 1e9, 1e-3, slow_links={(0, 1): 3e8}, hosts_per_leaf=2, uplink_bytes_per_s=7e8)
    traffic = [Background(source=0, target=3, bytes=1e8), Background(source=4, target=1, bytes=2e8, start_s=0.01)]
    runs = [simulate(make_schedule("k_way", 7, 6, sources=2), network, 1e7, background=traffic) for _ in range(2)]
    assert runs[0].transfers.equals(runs[1].transfers)
    assert runs[0].links.equals(runs[1].links)


def test_the_first_link_that_lost_bytes_is_named_whatever_the_order_of_keys():
    """The sentence is the same in every run; sets of names come in another order in every process."""
    for kinds in (["weights", "kv"], ["kv", "weights"]):
        ledger = Ledger(["nic 0 out", "nic 1 in"])
        for kind in kinds:
            ledger.transfer((0.0, 1.0, 0, 1, 0, 5.0, kind, "", ""), (1, 0), kind, 5.0)
        with pytest.raises(WorkbenchError, match="on nic 0 out: it carried 0 bytes of kv"):
            ledger.check_bytes()


def test_what_nodes_hold_at_first_is_not_awaited():
    held = np.array([[True, True], [False, True], [False, False]])
    found = simulate(chain(3, 2), uniform_network(3, 1e9), 1e9, held=held)
    assert found.arrival_s[1].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"run": "lockstep"}, UnknownName, "no run named 'lockstep'"),
        ({"block_bytes": 0.0}, InputError, "block_bytes"),
        ({"block_bytes": math.nan}, InputError, "block_bytes"),
        ({"background": [Background(source=0, target=7, bytes=1.0)]}, UserError, "from 0 to 7"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, problem):
    with pytest.raises(error, match=problem):
        simulate(chain(3, 2), uniform_network(3, 1e9), **{"block_bytes": 1e6, **arguments})
