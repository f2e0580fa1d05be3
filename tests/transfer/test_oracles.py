"""All 113 exact cases of tests/oracles/collectives.json, each value by the function that claims to compute it."""

import json
from pathlib import Path

import numpy as np
import pytest

from workbench.transfer.model import (
    Hockney,
    LogGP,
    chain_of_blocks_s,
    multicast_s,
    optimal_blocks,
    recursive_doubling_all_gather_s,
    ring_all_gather_s,
    ring_all_reduce_s,
    run_times,
    scatter_all_gather_broadcast_s,
    schedule_s,
    stream_s,
    two_level,
)
from workbench.transfer.policy import check, lower_bound, make_schedule, steps

CASES = json.loads((Path(__file__).parents[1] / "oracles" / "collectives.json").read_text())["cases"]
NAMES = {
    "binomial_pipeline": "binomial_pipeline",
    "chain": "chain",
    "sequential_unicast": "sequential",
    "whole_message_binomial_tree": "binomial_tree",
    "binary_tree_one_port": "binary_tree",
}


def of_kind(prefix):
    cases = [case for case in CASES if case["id"].startswith(prefix)]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["id"])


def test_every_case_is_covered():
    prefixes = ("bcast_", "optimal_bfs_", "hockney_", "chain_hetero_", "loggp_", "twolevel_")
    assert len(CASES) == 113 == sum(case["id"].startswith(prefixes) for case in CASES)


@of_kind("bcast_")
def test_steps_in_unit_blocks(case):
    nodes, blocks = case["params"]["nodes_including_source"], case["params"]["blocks"]
    expected = dict(case["expect"])
    assert lower_bound(nodes, blocks) == expected.pop("lower_bound")
    for name, count in expected.items():
        assert steps(NAMES[name], nodes, blocks) == count
        assert make_schedule(NAMES[name], nodes, blocks).steps == count


@of_kind("optimal_bfs_")
def test_the_pipeline_meets_the_optimum_found_by_search(case):
    nodes, blocks = case["params"]["nodes_including_source"], case["params"]["blocks"]
    assert lower_bound(nodes, blocks) == case["expect"]["lower_bound"]
    assert check(make_schedule("binomial_pipeline", nodes, blocks)).steps == case["expect"]["optimal_steps"]


@of_kind("hockney_")
def test_hockney_times(case):
    total_bytes, nodes = float(case["params"]["bytes"]), case["params"]["nodes_including_source"]
    cost = Hockney(alpha_s=float(case["params"]["alpha_s"]), bytes_per_s=float(case["params"]["bandwidth_Bps"]))
    found = {}
    for short, name in (("chain", "chain"), ("binomial", "binomial_pipeline")):
        best = optimal_blocks(name, nodes, total_bytes, cost, limit=10**9)
        found[f"{short}_k_real_optimum"] = best.real
        found[f"{short}_k_integer_optimum"] = best.integer
        found[f"{short}_T_at_integer_optimum"] = best.seconds
        found[f"{short}_T_real_optimum"] = best.bound_s
        for blocks in (1, 16, 32, 80):
            found[f"{short}_T_k{blocks}"] = multicast_s(name, nodes, blocks, total_bytes, cost)
    found["sequential_unicast_T"] = multicast_s("sequential", nodes, 1, total_bytes, cost)
    found["whole_message_binomial_tree_T"] = multicast_s("binomial_tree", nodes, 1, total_bytes, cost)
    found["ring_allgather_T"] = ring_all_gather_s(total_bytes, nodes, cost)
    found["ring_allreduce_T"] = ring_all_reduce_s(total_bytes, nodes, cost)
    found["scatter_ring_allgather_bcast_T"] = scatter_all_gather_broadcast_s(total_bytes, nodes, cost)
    found["recursive_doubling_allgather_T"] = recursive_doubling_all_gather_s(total_bytes, nodes, cost)
    assert found == pytest.approx({name: float(value) for name, value in case["expect"].items()}, rel=1e-12)


@of_kind("chain_hetero_")
def test_chain_of_unequal_links(case):
    hops, blocks = [float(time) for time in case["params"]["hop_block_time"]], case["params"]["blocks"]
    expected = float(case["expect"]["T"])
    assert chain_of_blocks_s(hops, blocks)[-1] == pytest.approx(expected, rel=1e-12)
    schedule = make_schedule("chain", len(hops) + 1, blocks)
    times = run_times(schedule, np.array(hops)[schedule.source])
    assert times.complete_s[1:].tolist() == pytest.approx(chain_of_blocks_s(hops, blocks).tolist(), rel=1e-12)
    assert times.complete_s.max() == pytest.approx(expected, rel=1e-12)


@of_kind("loggp_")
def test_loggp_messages(case):
    given = case["params"]
    cost = LogGP(
        latency_s=float(given["L"]),
        overhead_s=float(given["o"]),
        gap_s=float(given["g"]),
        per_byte_s=float(given["G"]),
    )
    assert cost.travel_s(given["bytes"]) == pytest.approx(float(case["expect"]["one_message_T"]), rel=1e-12)
    stream = stream_s(cost, given["bytes"], given["messages"])
    assert stream == pytest.approx(float(case["expect"]["stream_T"]), rel=1e-12)
    flowing = schedule_s(make_schedule("sequential", 2, given["messages"]), given["bytes"], cost)
    assert flowing == pytest.approx(float(case["expect"]["stream_T"]), rel=1e-12)


@of_kind("twolevel_")
def test_two_level_transfer(case):
    given = case["params"]
    found = two_level(
        float(given["bytes"]), given["gpus_per_host"], float(given["nic_Bps"]), float(given["nvlink_Bps"])
    )
    assert {
        "inter_host_T": found.inter_host_s,
        "local_allgather_T": found.all_gather_s,
        "sequential_T": found.sequential_s,
        "overlapped_lower_bound_T": found.overlapped_s,
    } == pytest.approx({name: float(value) for name, value in case["expect"].items()}, rel=1e-12)
