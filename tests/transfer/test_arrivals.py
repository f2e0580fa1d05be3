"""Closed-form arrivals against the schedules themselves, run by the slow twins of lock step and dataflow."""

import numpy as np
import pytest

from workbench.errors import UnknownName, UserError
from workbench.transfer.kernels.coverage import joint_copy, joint_copy_slow, last_arrivals, last_arrivals_slow
from workbench.transfer.kernels.pipeline import binomial_arrival_slow, binomial_pipeline_arrivals
from workbench.transfer.kernels.slow import dataflow_slow
from workbench.transfer.model import Hockney, arrival_steps, completion, run_times
from workbench.transfer.policy import arrivals, make_schedule

VARIANTS = [
    ("sequential", {}),
    ("chain", {}),
    ("binomial_tree", {}),
    ("binary_tree", {}),
    ("faasnet_tree", {}),
    ("binomial_pipeline", {}),
    ("ring_broadcast", {"slices": 3}),
    ("k_way", {"sources": 2}),
    ("k_way", {"sources": 3, "order": "strided", "parts": 2}),
    ("multi_chain", {"chains": 2}),
    ("multi_chain", {"chains": 2, "sources": 2}),
    ("sharded", {"lanes": 1}),
    ("sharded", {"lanes": 2}),
    ("sharded", {"lanes": 3}),
]


def sizes(name, options):
    lanes = options.get("lanes", 1)
    for nodes in (2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 31):
        for blocks in (1, 2, 3, 6, 12):
            if name in ("k_way", "multi_chain") and nodes < 5:
                continue
            if name == "sharded" and (nodes % lanes or nodes < 2 * lanes or blocks % lanes):
                continue
            yield nodes, blocks


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_closed_form_is_what_the_schedule_does(name, options):
    tried = 0
    for nodes, blocks in sizes(name, options):
        schedule = make_schedule(name, nodes, blocks, **options)
        lock_step = arrival_steps(name, nodes, blocks, "barrier", **options)
        assert lock_step.tolist() == arrivals(schedule).tolist(), (nodes, blocks)
        flowing = arrival_steps(name, nodes, blocks, "dataflow", **options)
        assert flowing.tolist() == run_times(schedule, 1.0).held_s.tolist(), (nodes, blocks)
        tried += 1
    assert tried >= 9


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_closed_form_equals_the_slow_twin(name, options):
    for nodes, blocks in ((6, 6), (12, 3)) if options.get("lanes") != 2 else ((6, 6), (12, 4)):
        schedule = make_schedule(name, nodes, blocks, **options)
        held = {(holder, block): 0 for holder in schedule.holders for block in range(schedule.blocks)}
        rows = list(zip(schedule.source.tolist(), schedule.target.tolist(), schedule.block.tolist(), strict=True))
        dataflow_slow(rows, held, [1] * len(rows), [1] * len(rows))
        found = arrival_steps(name, nodes, blocks, **options)
        assert found.tolist() == [[held[node, block] for block in range(schedule.blocks)] for node in range(nodes)]


@pytest.mark.parametrize("nodes", range(2, 65))
def test_binomial_arrivals_for_every_number_of_nodes(nodes):
    for blocks in range(1, 33):
        found = arrival_steps("binomial_pipeline", nodes, blocks)
        assert (found == arrivals(make_schedule("binomial_pipeline", nodes, blocks))).all()
        assert found.max() == blocks - 1 + (nodes - 1).bit_length()


def test_arrival_counts_of_the_notes():
    """notes on λScale §2.2, n = 8, m = 4."""
    assert arrival_steps("binomial_pipeline", 8, 4)[1:].tolist() == [
        [1, 5, 6, 4], [4, 2, 6, 5], [2, 4, 6, 5], [4, 5, 3, 6], [3, 5, 4, 6], [4, 3, 5, 6], [3, 4, 5, 6],
    ]  # fmt: skip


@pytest.mark.parametrize("dimensions", range(1, 7))
def test_arrival_formula_equals_its_twin_on_bits_as_text(dimensions):
    for blocks in (1, 2, 5, 11, 39):
        steps = np.empty((2**dimensions, blocks), dtype=np.int64)
        binomial_pipeline_arrivals(steps)
        for vertex in range(1, 2**dimensions):
            slow = [binomial_arrival_slow(vertex, block, dimensions, blocks) + 1 for block in range(blocks)]
            assert steps[vertex].tolist() == slow


def test_only_three_schedules_gain_from_not_waiting_for_steps():
    faster = {
        (name, *options.items())
        for name, options in VARIANTS
        for nodes, blocks in sizes(name, options)
        if (
            arrival_steps(name, nodes, blocks, **options) < arrival_steps(name, nodes, blocks, "barrier", **options)
        ).any()
    }
    assert {name for name, *_ in faster} == {"binomial_tree", "faasnet_tree", "sharded"}


def test_coverage_kernels_equal_their_twins():
    arrival = np.random.default_rng(3).integers(0, 50, (9, 7))
    complete = np.empty(9, dtype=np.int64)
    last_arrivals(arrival, complete)
    assert complete.tolist() == last_arrivals_slow(arrival)
    for first in range(9):
        assert joint_copy(arrival, first) == joint_copy_slow(arrival, first)


def test_completion_table():
    table = completion("chain", 4, 10, 100e6, Hockney(alpha_s=0.001, bytes_per_s=1e9))
    assert table.columns == ["node", "steps", "complete_s"]
    assert table["steps"].to_list() == [0, 10, 11, 12]
    assert table["complete_s"].to_list() == pytest.approx([0, 0.110, 0.121, 0.132], rel=1e-12)


def test_wrong_arguments_are_refused():
    with pytest.raises(UnknownName, match="barrier"):
        arrival_steps("chain", 4, 4, "barier")
    with pytest.raises(UserError, match="divide"):
        arrival_steps("sharded", 8, 5, lanes=4)
    with pytest.raises(UserError, match="1 source or from 3"):
        arrival_steps("multi_chain", 8, 5, chains=3, sources=2)
    with pytest.raises(UserError, match=r"slices'.*of 1 or more"):
        arrival_steps("ring_broadcast", 8, 5, slices=0)
    with pytest.raises(UserError, match="total_bytes"):
        completion("chain", 4, 10, 0, Hockney(bytes_per_s=1e9))
