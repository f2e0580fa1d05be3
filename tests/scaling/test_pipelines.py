"""Who makes a pipeline and when: the notes' formation steps, λScale's Figure 5, and brute force on small cases."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from workbench.errors import InputError
from workbench.scaling.policy import (
    even_cover,
    executable,
    form_planned,
    form_searched,
    group_pipelines,
    halving_lengths,
)
from workbench.transfer.model import arrival_steps, k_way_steps
from workbench.transfer.policy import sub_groups

FORMED = {  # notes on λScale §2.6: (nodes, sources) -> (length, step) of every pipeline, and the last step of all
    (12, 1): ([(8, 18), (2, 19), (1, 19)], 19),
    (12, 2): ([(8, 9), (2, 10)], 18),
    (12, 4): ([(8, 5)], 17),
    (8, 1): ([(4, 18), (2, 18), (1, 18)], 18),
    (8, 2): ([(4, 9), (2, 10)], 17),
    (8, 4): ([(4, 4)], 16),
}


@pytest.mark.parametrize(("size", "expected"), FORMED.items())
def test_formation_steps_of_the_artifacts_plan(size, expected):
    nodes, sources = size
    arrival = arrival_steps("k_way", nodes, 8, sources=sources, order="strided", parts=2)
    found = form_searched(executable(arrival, 2), sources, halving_lengths(nodes - sources, 8))
    assert ([(len(one.nodes), one.forms) for one in found], arrival.max()) == expected


def planned_steps(nodes, blocks, sources, order):
    arrival = arrival_steps("k_way", nodes, blocks, sources=sources, order=order)
    groups = [members[1:] for members in sub_groups(nodes, sources)]
    return arrival, form_planned(arrival, group_pipelines(groups))


def test_figure_5_has_two_pipelines_after_the_third_step():
    """λScale §4.2: from 2 copies to 8 nodes with 4 blocks, rotated; in one order nothing forms before step 4."""
    _, rotated = planned_steps(8, 4, 2, "contiguous")
    assert [one.forms for one in rotated].count(3) == 2
    assert rotated[0].forms == 3
    arrival, naive = planned_steps(8, 4, 2, "naive")
    assert naive[0].forms >= 4
    assert form_searched(arrival, 2, [2])[0].forms == 4


@pytest.mark.parametrize(("nodes", "sources"), [(8, 2), (8, 4), (12, 3), (12, 4), (32, 8)])
def test_a_planned_pipeline_never_forms_before_one_node_of_each_group_can_suffice(nodes, sources):
    _, found = planned_steps(nodes, 16, sources, "contiguous")
    first = k_way_steps(nodes, 16, sources).one_per_group
    assert found[0].forms >= first
    assert len(found) == nodes // sources - 1
    assert all(len(one.nodes) == sources for one in found)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([[3, 4], [5, 6], [7, 8]], [(3, 5, 7), (4, 6, 8)]),
        ([[3, 4, 5], [6, 7], [8]], [(3, 6, 8), (4, 7), (5,)]),
        ([[2, 3, 4, 5], [6]], [(2, 6), (3, 4, 5)]),
        ([[1, 2, 3]], [(1, 2, 3)]),
        ([[], [4]], [(4,)]),
        ([], []),
    ],
)
def test_algorithm_2_by_hand(groups, expected):
    assert group_pipelines(groups) == expected


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_algorithm_2_uses_every_node_once_and_one_of_a_group_unless_it_is_alone(sizes):
    starts = itertools.accumulate([0, *sizes[:-1]])
    groups = [list(range(first, first + size)) for first, size in zip(starts, sizes, strict=True)]
    planned = group_pipelines(groups)
    assert sorted(node for one in planned for node in one) == list(range(sum(sizes)))
    for members in planned[:-1]:
        assert all(sum(node in group for node in members) <= 1 for group in groups)


@pytest.mark.parametrize(("count", "lengths"), [(11, [8, 2, 1]), (10, [8, 2]), (8, [8]), (7, [4, 2, 1]), (24, [8] * 3)])
def test_halving_plan(count, lengths):
    assert halving_lengths(count, 8) == lengths


@given(st.integers(0, 40), st.integers(1, 20))
def test_halving_plan_uses_every_destination(count, blocks):
    lengths = halving_lengths(count, blocks)
    assert sum(lengths) == count
    assert lengths == sorted(lengths, reverse=True)


def covers(holders, length):
    """All choices, by trying every node for every block."""
    for runs in itertools.product(*holders):
        counts = [runs.count(node) for node in set(runs)]
        if len(counts) == length and max(counts) - min(counts) <= 1:
            yield runs


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), unique=True, max_size=4), min_size=1, max_size=6), st.integers(1, 5))
def test_the_search_finds_the_first_choice_of_all(holders, length):
    assert even_cover(holders, length) == next(covers(holders, length), None)


@pytest.mark.parametrize(("nodes", "sources", "blocks"), [(64, 1, 32), (63, 3, 31), (33, 1, 32), (58, 13, 29)])
def test_a_pipeline_of_one_block_a_node_forms_as_soon_as_a_matching_exists(nodes, sources, blocks):
    """Far more choices than can be tried one by one; whether one exists is told by SciPy."""
    ready = arrival_steps("k_way", nodes, blocks, sources=sources, order="contiguous").astype(int)
    steps = np.unique(ready[sources:])
    there = [csr_matrix(ready[sources:] <= step) for step in steps]
    full = [(maximum_bipartite_matching(held) >= 0).sum() == blocks for held in there]
    assert form_searched(ready, sources, [blocks])[0].forms == steps[full.index(True)]


@pytest.mark.parametrize("size", [(58, 13, 29), (44, 3, 28)])
def test_a_search_among_too_many_choices_is_given_up(size):
    nodes, sources, blocks = size
    ready = arrival_steps("k_way", nodes, blocks, sources=sources, order="contiguous").astype(int)
    found = form_searched(ready, sources, halving_lengths(nodes - sources, blocks))
    assert [one.in_flight for one in found] == halving_lengths(nodes - sources, blocks)
    assert all(ready[node, block] <= one.forms for one in found for block, node in enumerate(one.runs))


@settings(deadline=None)
@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_what_forms_holds_a_copy_and_no_node_serves_twice(nodes, blocks, seed):
    ready = np.random.default_rng(seed).integers(1, 7, (nodes, blocks))
    ready[0] = 0
    for found in (
        form_searched(ready, 1, halving_lengths(nodes - 1, blocks)),
        form_planned(ready, group_pipelines([list(range(1, nodes))])),
    ):
        used = [node for one in found for node in one.nodes]
        assert len(used) == len(set(used))
        for one in found:
            assert all(ready[node, block] <= one.forms for block, node in enumerate(one.runs))
            assert set(one.runs) == set(one.nodes)


def test_a_block_runs_when_its_last_part_is_there():
    assert executable(np.array([[1, 4, 2, 3], [0, 0, 5, 6]]), 2).tolist() == [[4, 3], [0, 6]]
    with pytest.raises(InputError, match="no multiple of 3 parts"):
        executable(np.ones((2, 4)), 3)
    with pytest.raises(InputError, match="never arrives"):
        executable(np.array([[np.inf]]))
    with pytest.raises(InputError, match="shape"):
        executable(np.ones(3))


def test_a_pipeline_that_needs_more_nodes_than_blocks_leaves_the_rest_out():
    (one,) = form_planned(np.array([[0, 0], [2, 1], [1, 3], [2, 2]]), [(1, 2, 3)])
    assert one.forms == 1
    assert one.nodes == (2, 1)
    assert one.in_flight == 2
