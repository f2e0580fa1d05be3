"""Where weights come from, when a node leaves its pipeline, where a request goes: cases by hand."""

import numpy as np
import pytest

from workbench.errors import InputError, UnknownName, UserError
from workbench.scaling.policy import (
    executable,
    form_planned,
    form_searched,
    keeps_kv_by,
    leave_times,
    locality_start,
    next_place,
    warm_order,
)


def test_one_source_for_each_cold_node_at_most():
    start = locality_start(2, [3, 4, 5], cached=[], replicas=[0, 1, 2])
    assert (start.cold, start.sources) == ((3, 4), (0, 1))


def test_without_replicas_the_paper_sends_from_host_memory_and_the_artifact_reads_ssds():
    paper = locality_start(3, [0, 1, 2], cached=[2], replicas=[])
    assert (paper.warm, paper.cold, paper.sources, paper.ssd) == ((2,), (0, 1), (2,), ())
    artifact = locality_start(3, [0, 1, 2], cached=[2], replicas=[], senders="gpu")
    assert (artifact.warm, artifact.cold, artifact.sources, artifact.ssd) == ((2,), (), (), (0, 1))
    nobody = locality_start(9, [0, 1], cached=[], replicas=[])
    assert (nobody.warm, nobody.cold, nobody.ssd) == ((), (), (0, 1))


@pytest.mark.parametrize(("nodes", "blocks"), [(1, 8), (2, 8), (3, 8), (4, 16), (12, 8), (5, 3)])
def test_warm_nodes_hold_a_joint_copy_after_blocks_over_nodes_loads(nodes, blocks):
    """Notes §2.9: ⌈b/s⌉ loads; fewer cannot do, since each node loads one block at a time."""
    orders = [warm_order(place, nodes, blocks) for place in range(nodes)]
    assert all(sorted(order) == list(range(blocks)) for order in orders)
    loads = -(-blocks // nodes)
    assert {block for order in orders for block in order[:loads]} == set(range(blocks))


def test_leaving():
    complete = np.array([2.0, 4.0, 3.0])
    assert leave_times(complete, "each").tolist() == [2.0, 4.0, 3.0]
    assert leave_times(complete, "whole").tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(UnknownName, match="way to switch"):
        leave_times(complete, "all")


def test_recomputing_is_the_rule_unless_moving_is_faster():
    assert keeps_kv_by(0.1, 0.1) == "recompute"
    assert keeps_kv_by(0.2, 0.1) == "move"


def test_replicas_before_pipelines_and_no_more_requests_than_nodes():
    assert next_place([5, 6], [0], [4]) == ("replica", 5)
    assert next_place([], [4, 3], [4, 4]) == ("pipeline", 1)
    assert next_place([], [4, 4], [4, 4]) is None


READY = np.array([[0, 0], [1, 3], [3, 2]])


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (lambda: form_planned(READY, [(1, 3)]), "'planned': is 3; give a whole number from 0 to 2"),
        (lambda: form_planned(READY, [(-1,)]), "'planned': is -1;"),
        (lambda: form_searched(READY, 1, [0]), "'lengths': is 0; give a whole number of 1 or more"),
        (lambda: form_searched(READY, 4, [1]), "'sources': is 4; give a whole number from 0 to 3"),
        (lambda: executable(READY, 0), "'parts': is 0;"),
        (lambda: leave_times(np.array([1.0, np.nan])), "'complete': holds a node that never completes"),
        (lambda: keeps_kv_by(np.nan, 1.0), "'recompute_s': is nan;"),
        (lambda: keeps_kv_by(1.0, -1.0), "'move_s': is -1.0;"),
        (lambda: next_place([], [1], [1, 2]), "'limits': has 2 numbers for 1 pipelines; give one each"),
    ],
)
def test_what_cannot_be_decided_is_refused_in_one_sentence(decide, said):
    with pytest.raises(InputError, match=said):
        decide()


def test_a_planned_pipeline_has_members():
    with pytest.raises(UserError, match="name at least one node"):
        form_planned(np.array([[0, 0], [1, 3]]), [(1,), ()])
