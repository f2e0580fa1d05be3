"""Schedules against the step counts and golden vectors of the notes on λScale §2.1 to §2.3 and §6."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import UnknownName, UserError
from workbench.transfer.policy import (
    SCHEDULES,
    by_bandwidth,
    check,
    fibonacci_tree,
    lower_bound,
    make_schedule,
    schedule_blocks,
    shares_vertex,
    step_form,
    steps,
)

GOLDEN = {
    (4, 3): "0→1:b0 | 0→2:b1,1→3:b0 | 0→1:b2,2→3:b1,3→2:b0 | 0→2:b2,1→3:b2,3→1:b1",
    (3, 3): "0→1:b0 | 0→2:b1 | 0→1:b2,1→2:b0 | 1→2:b2,2→1:b1",
    (6, 3): "0→1:b0 | 0→2:b1,1→3:b0 | 0→4:b2,2→3:b1,3→5:b0 | 0→5:b2,1→4:b0,3→1:b1,4→3:b2,5→2:b0 | "
    "1→4:b1,2→5:b1,4→1:b2,5→2:b2",
}


def transfers(schedule):
    return list(zip(*(column.tolist() for column in schedule[4:]), strict=True))


@pytest.mark.parametrize(("size", "text"), GOLDEN.items())
def test_binomial_pipeline_golden_vectors(size, text):
    expected = [
        (step, *map(int, re.findall(r"\d+", move)))
        for step, moves in enumerate(text.split(" | "))
        for move in moves.split(",")
    ]
    assert sorted(transfers(make_schedule("binomial_pipeline", *size))) == sorted(expected)


def test_active_links_per_step():
    def links(nodes):
        counts = Counter(make_schedule("binomial_pipeline", nodes, 16).step.tolist())
        return [counts[step] for step in range(len(counts))]

    assert links(8) == [1, 2, 4] + [7] * 15
    assert links(12) == [1, 2, 4, 7] + [11] * 14 + [8]


@pytest.mark.parametrize("nodes", range(2, 65))
def test_step_counts_and_invariants_for_every_size(nodes):
    halvings = math.ceil(math.log2(nodes))
    for blocks in range(1, 33):
        expected = {
            "sequential": blocks * (nodes - 1),
            "chain": blocks + nodes - 2,
            "binomial_tree": blocks * halvings,
            "binomial_pipeline": blocks - 1 + halvings,
        }
        assert lower_bound(nodes, blocks) == blocks - 1 + halvings
        for name, count in expected.items():
            schedule = make_schedule(name, nodes, blocks)
            assert schedule.steps == steps(name, nodes, blocks) == count
            assert len(schedule.step) == blocks * (nodes - 1)
            if blocks in (1, 2, 3, 7, 16, 32):
                check(schedule)
        for name in ("binary_tree", "faasnet_tree"):
            schedule = make_schedule(name, nodes, blocks)
            assert schedule.steps == steps(name, nodes, blocks)
            if blocks in (1, 2, 7):
                check(schedule)
        if nodes <= 12:
            deepest = {3: 2, 4: 2, 5: 3, 6: 3, 7: 3}.get(nodes, 4)
            assert steps("faasnet_tree", nodes, blocks) == (blocks if nodes == 2 else 2 * (blocks - 1) + deepest)


def highest_index_rule(dimensions, blocks):
    """Rule (a): the source sends block min(t, m-1), every other vertex its highest block; nobody to the source."""
    held = [set(range(blocks))] + [set() for _ in range(2**dimensions - 1)]
    rows = []
    for step in range(blocks + dimensions - 1):
        moves = []
        for vertex in range(2**dimensions):
            partner = vertex ^ (1 << step % dimensions)
            if partner and held[vertex]:
                moves.append((vertex, partner, min(step, blocks - 1) if vertex == 0 else max(held[vertex])))
        rows += [(step, *move) for move in moves]
        for _, partner, block in moves:
            held[partner].add(block)
    return rows


def last_one_step_rule(dimensions, blocks):
    """Rule (b): every vertex sends what arrived at its last step along a set bit of its own number."""
    latest = [None] * 2**dimensions
    rows = []
    for step in range(blocks + dimensions - 1):
        bit = 1 << step % dimensions
        latest[0] = min(step, blocks - 1)
        moves = [(v, v ^ bit, latest[v]) for v in range(2**dimensions) if v ^ bit and latest[v] is not None]
        rows += [(step, *move) for move in moves]
        for _, partner, block in moves:
            if partner & bit:
                latest[partner] = block
    return rows


@pytest.mark.parametrize("rule", [highest_index_rule, last_one_step_rule])
@pytest.mark.parametrize("dimensions", range(1, 6))
def test_binomial_pipeline_equals_the_independent_rules(rule, dimensions):
    for blocks in range(1, 20):
        assert transfers(make_schedule("binomial_pipeline", 2**dimensions, blocks)) == rule(dimensions, blocks)


def twin_nodes_by_their_story(nodes, blocks):
    """§2.2 played out: receivers swap after every 1-step, non-receivers send, twins are kept up to date."""
    dimensions = nodes.bit_length() - 1
    vertices = 2**dimensions
    second = {v: v + vertices - 1 for v in range(1, nodes - vertices + 1)}
    receiver = {v: v for v in second}
    outside = {}  # node -> the block it most recently received from outside
    rows = []
    outer = last_one_step_rule(dimensions, blocks)
    for step in range(blocks + dimensions - 1):
        fresh = []
        for v in second:
            taker = receiver[v]
            if taker in outside:
                rows.append((step, taker, v + second[v] - taker, outside[taker]))
        for _, source, target, block in (row for row in outer if row[0] == step):
            sender = source if source not in second else source + second[source] - receiver[source]
            rows.append((step, sender, receiver.get(target, target), block))
            fresh.append((receiver.get(target, target), block))
        outside.update(fresh)
        for v in second:
            if v >> step % dimensions & 1:
                receiver[v] = v + second[v] - receiver[v]
    for v, other in second.items():
        rows += [(blocks + dimensions - 1, a, b, outside[a]) for a, b in ((v, other), (other, v)) if a in outside]
    return rows


@pytest.mark.parametrize("nodes", [3, 5, 6, 7, 9, 12, 15, 21, 33])
def test_binomial_pipeline_with_doubled_vertices_equals_its_story(nodes):
    for blocks in (1, 2, 3, 4, 7, 12):
        told = twin_nodes_by_their_story(nodes, blocks)
        assert sorted(transfers(make_schedule("binomial_pipeline", nodes, blocks))) == sorted(told)


@pytest.mark.parametrize("nodes", range(2, 65))
def test_nodes_that_share_a_vertex(nodes):
    """By the transfers themselves: only twins exchange blocks in the last step of many blocks, both ways at once."""
    if nodes & (nodes - 1) == 0:
        assert not shares_vertex(nodes).any()
        return
    schedule = make_schedule("binomial_pipeline", nodes, 24)
    last = {(source, target) for step, source, target, _ in transfers(schedule) if step == schedule.steps - 1}
    twins = {node for pair in last if pair[::-1] in last for node in pair}
    assert set(np.flatnonzero(shares_vertex(nodes)).tolist()) == twins
    assert len(twins) == 2 * (nodes - 2 ** int(math.log2(nodes)))


def test_faasnet_tree_is_the_artifacts_table_to_twelve_nodes():
    parent, level = fibonacci_tree(12)
    assert parent.tolist() == [-1, 0, 1, 0, 2, 1, 3, 4, 2, 5, 6, 3]
    assert [level.tolist().count(depth) for depth in range(5)] == [1, 1, 2, 3, 5]


@given(st.integers(2, 300))
def test_fibonacci_tree_lags_one_and_two_levels(nodes):
    parent, level = fibonacci_tree(nodes)
    children = {}
    for node in range(1, nodes):
        children.setdefault(int(parent[node]), []).append(int(level[node] - level[parent[node]]))
    assert all(sorted(lags) in ([1], [1, 2]) for lags in children.values())
    assert sorted(level.tolist()) == level.tolist()


@st.composite
def any_schedule(draw):
    name = draw(st.sampled_from(sorted(SCHEDULES)))
    blocks = draw(st.integers(1, 12))
    options = {}
    if name == "sharded":
        options["lanes"] = draw(st.integers(1, 5))
        nodes = options["lanes"] * draw(st.integers(2, 5))
        blocks *= options["lanes"]
    else:
        nodes = draw(st.integers(2, 24))
    if name == "ring_broadcast":
        options["slices"] = draw(st.integers(1, 4))
    if name == "k_way":
        options["sources"] = draw(st.integers(1, nodes - 1))
        options["order"] = draw(st.sampled_from(["contiguous", "strided", "half", "naive"]))
        options["parts"] = draw(st.integers(1, 3))
    if name == "multi_chain":
        options["chains"] = draw(st.integers(1, max(1, nodes // 2)))
        options["sources"] = draw(st.sampled_from([1, options["chains"]]))
    return name, nodes, blocks, options


@given(any_schedule())
def test_every_schedule_keeps_the_rules_and_its_formula(which):
    name, nodes, blocks, options = which
    schedule = check(make_schedule(name, nodes, blocks, **options))
    assert schedule.name == name
    assert schedule.blocks == schedule_blocks(name, nodes, blocks, **options)
    assert schedule.steps == steps(name, nodes, schedule.blocks, **options)
    per_block, fixed = step_form(name, nodes, **options)
    assert schedule.steps == per_block * schedule.blocks + fixed
    assert len(schedule.step) == schedule.blocks * (nodes - len(schedule.holders))


@pytest.mark.parametrize(
    ("name", "nodes", "blocks", "options"),
    [
        ("chain", 1, 4, {}),
        ("chain", 4, 0, {}),
        ("k_way", 4, 4, {"sources": 4}),
        ("k_way", 4, 4, {"sources": 0}),
        ("k_way", 4, 4, {"parts": 0}),
        ("multi_chain", 4, 4, {"chains": 4}),
        ("multi_chain", 9, 4, {"chains": 3, "sources": 2}),
        ("sharded", 6, 4, {"lanes": 4}),
        ("sharded", 4, 4, {"lanes": 4}),
        ("sharded", 8, 5, {"lanes": 4}),
        ("ring_broadcast", 4, 4, {"slices": 0}),
        ("chain", 4, 4, {"slices": 2}),
    ],
)
def test_impossible_schedules_are_refused_in_a_sentence(name, nodes, blocks, options):
    with pytest.raises(UserError) as caught:
        make_schedule(name, nodes, blocks, **options)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_unknown_names_get_near_ones():
    with pytest.raises(UnknownName, match="binomial_pipeline"):
        make_schedule("binomial", 4, 4)
    with pytest.raises(UnknownName, match="strided"):
        make_schedule("k_way", 4, 4, order="stride")


def test_faster_nodes_come_first_in_a_chain():
    order = by_bandwidth([50e9, 10e9, 20e9, 40e9, 20e9])
    assert order == [0, 3, 2, 4, 1]
    assert by_bandwidth([1.0, 1.0, 3.0, 2.0], sources=2) == [0, 1, 2, 3]
