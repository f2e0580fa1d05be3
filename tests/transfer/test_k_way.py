"""k sources: the tables and facts of λScale's Algorithm 1 (notes §2.5)."""

import pytest

from workbench.transfer.model import k_way_steps, milestones_of
from workbench.transfer.policy import arrivals, binomial_pipeline, block_order, k_way, sub_groups

TABLE = {  # (nodes, sources, blocks): joint copy, one per sub-group, all complete, and the first two in naive order
    (8, 1, 16): (16, 18, 18, 16, 18),
    (8, 2, 4): (2, 3, 5, 4, 4),
    (8, 2, 16): (8, 9, 17, 16, 16),
    (8, 4, 16): (4, 4, 16, 16, 16),
    (12, 1, 16): (16, 18, 19, 16, 18),
    (12, 2, 16): (8, 9, 18, 16, 16),
    (12, 3, 16): (6, 7, 17, 16, 16),
    (12, 4, 16): (4, 5, 17, 16, 16),
    (32, 8, 16): (2, 3, 17, 16, 16),
}


@pytest.mark.parametrize("order", ["contiguous", "strided"])
@pytest.mark.parametrize(("size", "expected"), TABLE.items())
def test_table_of_milestones(size, expected, order):
    nodes, sources, blocks = size
    found = k_way_steps(nodes, blocks, sources, order)
    naive = k_way_steps(nodes, blocks, sources, "naive")
    assert (found.joint_copy, found.one_per_group, found.complete, naive.joint_copy, naive.one_per_group) == expected


@pytest.mark.parametrize("size", [(8, 2, 16), (12, 3, 16), (13, 4, 10), (7, 3, 5)])
def test_milestones_from_the_schedule_itself(size):
    nodes, sources, blocks = size
    for order in ("contiguous", "strided", "half", "naive"):
        arrival = arrivals(k_way(nodes, blocks, sources, order))
        assert milestones_of(arrival, sources) == k_way_steps(nodes, blocks, sources, order)


@pytest.mark.parametrize("members", range(2, 34))
def test_steps_to_the_first_pipeline(members):
    for blocks in (8, 16, 24):
        for sources in range(1, 7):
            chunk = -(-blocks // sources)
            found = k_way_steps(sources * members, blocks, sources)
            assert found.joint_copy == chunk
            later = (members - 1).bit_length()
            if chunk >= 2 and members & (members - 1) == 0:
                assert found.one_per_group == chunk + later - 1
            elif chunk >= 2:
                assert found.one_per_group <= chunk + later - 1
            assert found.complete == blocks - 1 + later


def test_figure_5_relative_nodes_2_and_3_have_the_first_chunk_after_three_steps():
    arrival = arrivals(k_way(8, 4, 2))
    for group, members in enumerate(sub_groups(8, 2)):
        first_chunk = block_order(group, 2, 4)[:2]
        for place in (2, 3):
            assert (arrival[members[place], first_chunk] <= 3).all()
            assert arrival[members[place], first_chunk].max() == 3


def test_groups_and_orders():
    assert [len(group) for group in sub_groups(12, 5)] == [3, 3, 2, 2, 2]
    assert sub_groups(5, 2) == [[0, 2, 3], [1, 4]]
    assert [block_order(i, 3, 6) for i in range(3)] == [[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 0, 1], [4, 5, 0, 1, 2, 3]]
    assert block_order(2, 4, 8, "strided") == [2, 6, 3, 7, 0, 4, 1, 5]
    assert block_order(3, 4, 8, "half") == [1, 3, 5, 7, 0, 2, 4, 6]
    assert block_order(3, 4, 4, "naive") == [0, 1, 2, 3]


def test_parts_of_a_block_are_neighbours_in_the_order():
    cut = arrivals(k_way(8, 8, 2, "strided", parts=2))
    expected = arrivals(binomial_pipeline(4, 16))
    for group, members in enumerate(sub_groups(8, 2)):
        order = [2 * block + part for block in block_order(group, 2, 8, "strided") for part in range(2)]
        assert cut[members][:, order].tolist() == expected.tolist()
