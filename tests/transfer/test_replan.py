"""Survivors complete each other from whatever they hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError, UserError, WorkbenchError
from workbench.transfer.policy import arrivals, check, lower_bound, make_schedule, replan


@given(st.integers(2, 16), st.integers(1, 12), st.data())
def test_a_replan_is_a_valid_schedule_among_survivors(nodes, blocks, data):
    schedule = make_schedule("binomial_pipeline", nodes, blocks)
    at = data.draw(st.integers(0, schedule.steps))
    dead = data.draw(st.sets(st.integers(1, nodes - 1), max_size=nodes - 1))
    held = arrivals(schedule) <= at
    plan = check(
        replan(schedule, dead, held), held=held & ~np.isin(np.arange(nodes), list(dead))[:, None], absent=tuple(dead)
    )
    assert not dead & set(plan.source.tolist())
    assert not dead & set(plan.target.tolist())
    survivors = [node for node in range(nodes) if node not in dead]
    assert len(plan.step) == (~held[survivors]).sum()


def test_a_lost_block_is_said_so():
    held = arrivals(make_schedule("chain", 4, 3)) <= 2
    with pytest.raises(WorkbenchError, match=r"holds block 2 \(1 blocks lost with node 0\)"):
        replan(make_schedule("chain", 4, 3), {0}, held)


def test_the_wrong_shape_is_refused():
    with pytest.raises(UserError, match="4 x 3"):
        replan(make_schedule("chain", 4, 3), {1}, np.ones((3, 4), dtype=bool))


@pytest.mark.parametrize("nodes", [4, 8, 13])
def test_from_scratch_it_stays_near_the_optimum(nodes):
    held = np.zeros((nodes, 16), dtype=bool)
    held[0] = True
    assert replan(make_schedule("chain", nodes, 16), (), held).steps <= 1.3 * lower_bound(nodes, 16)


def test_a_replanned_schedule_without_a_full_holder_can_be_checked():
    """When the source dies, what the survivors hold stands in for complete copies."""
    held = np.array([[1, 1], [1, 0], [0, 1]], dtype=bool)
    plan = replan(make_schedule("binomial_pipeline", 3, 2), {0}, held)
    assert plan.holders == ()
    assert check(plan, held=held, absent=(0,)) is plan
    with pytest.raises(InputError, match="has no holder"):
        check(plan)
